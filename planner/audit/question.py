"""What a deployment asks, as numbers: its load with headroom, its engine, and the precision a shape may run in."""

from __future__ import annotations

import math
from fractions import Fraction

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engines import Engine, engine
from planner.catalog.gpus import Gpu
from planner.cost.setting import Precision
from planner.plan.document import ShapeDocument
from planner.problem.documents import Deployment
from planner.problem.precision import resolve_precisions

SEQUENCES = "concurrent sequences"
TOKENS = "output tokens/s"
REQUESTS = "requests/s"


def load_asked(question: Deployment) -> tuple[float, str]:
    """Load of a deployment and its unit: whole sequences for a concurrency, output tokens/s for a request rate, requests/s where it is in buckets."""
    workload = question.workload
    if workload.concurrency is not None:
        return float(math.ceil(workload.concurrency * (1.0 + question.headroom))), SEQUENCES
    rate = 0.0 if workload.request_rate is None else workload.request_rate
    if workload.buckets:
        return float(Fraction(rate) * (1 + Fraction(question.headroom))), REQUESTS
    return float(Fraction(rate) * Fraction(workload.output_tokens) * (1 + Fraction(question.headroom))), TOKENS


def engine_of(question: Deployment) -> Engine:
    """Facts of the engine a deployment runs."""
    return engine(question.engine.name, question.engine.version)


def precision_of(question: Deployment, architecture: ModelArchitecture, gpu: Gpu, shape: ShapeDocument) -> Precision | None:
    """Precision of a shape among those its deployment may run in; None when it may not run in that one."""
    allowed = resolve_precisions(question, architecture, engine_of(question), gpu)
    claimed = (shape.weights_dtype, shape.kv_dtype)
    return next((precision for precision in allowed if (precision.weights, precision.kv_cache) == claimed), None)


def context_tokens(question: Deployment) -> int:
    """Tokens a sequence holds when it ends: its prompt and its whole output."""
    return math.ceil(question.workload.prompt_tokens) + math.ceil(question.workload.output_tokens)

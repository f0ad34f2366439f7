"""What a deployment asks, as numbers: its load with headroom, and the setting its shapes are judged in.

Defaults are the engine's published ones where the deployment leaves them open; the context reserved for is what one request needs.
"""

from __future__ import annotations

import math
from fractions import Fraction

from planner.audit.case import Family
from planner.catalog.engines import Engine, engine
from planner.cost.setting import Precision, Setting
from planner.plan.document import ShapeDocument
from planner.problem.documents import Deployment, Problem
from planner.problem.precision import resolve_precisions

SEQUENCES = "concurrent sequences"
TOKENS = "output tokens/s"


def load_asked(question: Deployment) -> tuple[float, str]:
    """Load of a deployment and its unit: whole sequences for a concurrency, output tokens/s for a request rate."""
    workload = question.workload
    if workload.concurrency is not None:
        return float(math.ceil(workload.concurrency * (1.0 + question.headroom))), SEQUENCES
    rate = 0.0 if workload.request_rate is None else workload.request_rate
    return float(Fraction(rate) * Fraction(workload.output_tokens) * (1 + Fraction(question.headroom))), TOKENS


def engine_of(question: Deployment) -> Engine:
    """Facts of the engine a deployment runs."""
    return engine(question.engine.name, question.engine.version)


def precision_of(family: Family) -> Precision | None:
    """Precision of the family's shape among those its deployment may run in; None when it may not run in that one."""
    allowed = resolve_precisions(family.question, family.architecture, engine_of(family.question), family.pool.gpu)
    return next((precision for precision in allowed if _is(precision, family.shape)), None)


def _is(precision: Precision, shape: ShapeDocument) -> bool:
    return precision.weights == shape.weights_dtype and precision.kv_cache == shape.kv_dtype


def context_tokens(question: Deployment) -> int:
    """Tokens a sequence holds when it ends: its prompt and its whole output."""
    return math.ceil(question.workload.prompt_tokens) + math.ceil(question.workload.output_tokens)


def setting_of(problem: Problem, family: Family, precision: Precision) -> Setting:
    """Setting the family's shape was promised in."""
    question, rules = family.question, engine_of(family.question)
    memory = question.memory
    batched = rules.batched_tokens(family.pool.gpu) if memory is None or memory.max_batched_tokens is None else memory.max_batched_tokens
    length = context_tokens(question) if memory is None or memory.max_model_len is None else memory.max_model_len
    share = rules.gpu_memory_utilization if memory is None or memory.gpu_memory_utilization is None else memory.gpu_memory_utilization
    return Setting(
        architecture=family.architecture,
        precision=precision,
        engine=rules.name if question.engine.version is None else f"{rules.name} {question.engine.version}",
        gpu=family.pool.gpu,
        paths=family.pool.paths,
        prompt_tokens=float(question.workload.prompt_tokens),
        output_tokens=float(question.workload.output_tokens),
        max_batched_tokens=batched,
        max_model_len=length,
        gpu_memory_utilization=share,
        prefix_cache_hit_rate=0.0 if memory is None else memory.prefix_cache_hit_rate,
        profile=problem.profile,
    )

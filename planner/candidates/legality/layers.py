"""Every pipeline stage holds at least one layer: p <= L."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, finding
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report more stages than layers."""
    layers = question.architecture.layers
    if degrees.pipeline_parallel > layers:
        message = f"{layers} layers over PP {degrees.pipeline_parallel} leaves {degrees.pipeline_parallel - layers} stages empty"
        yield from finding(question.engine.rule("layers"), "PP_EXCEEDS_LAYERS", message, f"PP up to {layers}")

"""A vision tower's heads never veto the language model's degrees: the tower is repeated on every rank, which costs memory."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, finding
from planner.catalog.dtypes import bytes_per_element
from planner.diagnostics import Diagnostic, Severity
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Warn where an engine version may lack the fallback, and say what a repeated tower costs each GPU."""
    tower, t = question.architecture.vision, degrees.tensor_parallel
    if tower is None:
        return
    cost = "its weights are repeated on every GPU"
    if tower.parameters is not None:
        size = tower.parameters * bytes_per_element(question.architecture.dtype) / 2.0**30
        cost = f"its {size:.1f} GiB are repeated on every GPU"
    else:
        message = "the model's config does not say how large its vision tower is: its weights are not counted"
        yield Diagnostic("VISION_WEIGHTS_UNKNOWN", message, "keep a few GiB free", Severity.WARNING)
    if tower.heads is not None and tower.heads % t:
        message = f"{tower.heads} heads of the vision tower / TP {t} leaves {tower.heads % t} over: the tower cannot be cut, {cost}"
        hint = "the language model's TP stands; run the encoder data-parallel where the engine offers it"
        yield from finding(question.engine.rule("vision_heads"), "VISION_HEADS_NOT_DIVISIBLE", message, hint)

"""Query heads are dealt out whole: H % t == 0."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from planner.candidates.legality.question import Question, degrees_that, divisors, finding
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report heads that do not divide, once per distinct number of heads; a vision tower's heads are another rule's."""
    t = degrees.tensor_parallel
    counts = sorted({attention.heads for attention in question.attentions()})
    for heads in counts:
        if heads % t:
            message = f"{heads} attention heads / TP {t} leaves {heads % t} over"
            yield from finding(question.engine.rule("heads"), "HEADS_NOT_DIVISIBLE", message, degrees_that(divisors(gcd(*counts))))

"""Recurrent mixers are cut along heads and groups: heads % t == 0, and groups % t == 0 unless there is one group to repeat."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from planner.candidates.legality.question import Question, degrees_that, divisors, finding
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report groups (B and C of Mamba-2, key heads of gated delta) or heads that do not divide."""
    t = degrees.tensor_parallel
    rule = question.engine.rule("recurrent_groups")
    for state in question.recurrents():
        groups = state.heads if state.groups == 1 else state.groups
        hint = degrees_that(divisors(gcd(state.heads, groups)))
        if state.groups > 1 and state.groups % t:
            message = f"{state.groups} {state.kind} groups / TP {t} leaves {state.groups % t} over"
            yield from finding(rule, "MAMBA_GROUPS_NOT_DIVISIBLE", message, hint)
        if state.heads % t:
            message = f"{state.heads} {state.kind} heads / TP {t} leaves {state.heads % t} over"
            yield from finding(rule, "HEADS_NOT_DIVISIBLE", message, hint)

"""Data-parallel attention inside a replica: only beside routed experts, and in the layouts an engine knows."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, finding
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report data-parallel attention for a model without experts, or beside tensor parallelism where the engine has no such layout."""
    if degrees.data_parallel == 1:
        return
    rule = question.engine.rule("attention_dp")
    if not question.expert_parts():
        message = f"DP {degrees.data_parallel} inside a replica of a model without experts is {degrees.data_parallel} replicas"
        yield from finding(rule, "ATTENTION_DP_NEEDS_EXPERTS", message, "leave DP at 1 and ask for more replicas")
    elif question.engine.attention_dp == "one" and degrees.tensor_parallel > 1:
        message = f"{question.engine.title} runs data-parallel attention on every rank of a stage; TP {degrees.tensor_parallel} x "
        message += f"DP {degrees.data_parallel} has {degrees.tensor_parallel} ranks share one"
        hint = f"TP1 x DP{degrees.stage_gpus}"
        yield from finding(rule, "ATTENTION_DP_LAYOUT", message, hint)

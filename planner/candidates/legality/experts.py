"""Experts are dealt out whole over the expert ranks: E % e == 0, in the layouts an engine knows."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, divisors, finding
from planner.diagnostics import Diagnostic, Severity
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report expert parallelism without experts, over ranks that do not divide, or in a layout the engine does not have."""
    e, stage = degrees.expert_parallel, degrees.stage_gpus
    if e == 1:
        return
    parts = question.expert_parts()
    rule = question.engine.rule("experts")
    if not parts:
        message = f"EP {e}, but {question.architecture.name} has no routed experts"
        yield Diagnostic("NO_EXPERTS", message, "leave expert parallelism at 1", Severity.ERROR)
        return
    for experts in sorted({part.experts for part in parts}):
        if experts % e:
            redundant = e - experts % e
            message = f"{experts} experts / EP {e} leaves {experts % e} over"
            listed = ", ".join(f"EP{degree}" for degree in divisors(experts) if degree > 1)
            hint = f"legal: {listed}; or {redundant} redundant expert{'s' if redundant > 1 else ''}, which makes {experts + redundant}"
            yield from finding(rule, "EXPERTS_NOT_DIVISIBLE", message, hint)
    if stage % e or (question.engine.expert_parallel == "whole stage" and e != stage):
        form = "1 or all" if question.engine.expert_parallel == "whole stage" else "a divisor of the"
        message = f"EP {e} over stages of {stage} ranks (TP {degrees.tensor_parallel} x DP {degrees.data_parallel}): "
        message += f"{question.engine.title} spreads experts over {form} ranks of a stage"
        yield from finding(rule, "EP_LAYOUT_NOT_SUPPORTED", message, f"set EP to 1 or {stage}")

"""Attention over compressed tokens: an engine version that has it, and output groups dealt out whole, g % t == 0."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, degrees_that, divisors, finding
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def support(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report a model whose attention the engine's version does not have, or not over several pipeline stages."""
    if not question.architecture.compressed:
        return
    engine = question.engine
    title, name = f"{engine.title} {engine.version}", question.architecture.name
    general, staged = engine.rule("compressed_attention"), engine.rule("compressed_attention", "pipeline")
    if general is not None and general.effect != "none":
        message = f"{title} has no attention over compressed tokens, which {name} is made of"
        yield from finding(general, "ATTENTION_NOT_SUPPORTED", message, general.hint)
    elif staged is not None and degrees.pipeline_parallel > 1:
        message = f"{title} does not run {name} in pipeline stages"
        yield from finding(staged, "ATTENTION_NOT_SUPPORTED", message, staged.hint)


def output_groups(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report output groups that ranks would have to share, once per distinct number of groups."""
    t = degrees.tensor_parallel
    for groups in sorted({attention.output_groups for attention in question.attentions() if attention.output_groups}):
        if groups % t:
            message = f"{groups} output groups / TP {t} leaves {groups % t} over"
            rule = question.engine.rule("output_groups")
            yield from finding(rule, "OUTPUT_GROUPS_NOT_DIVISIBLE", message, degrees_that(divisors(groups)))

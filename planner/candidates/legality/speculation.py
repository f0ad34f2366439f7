"""Speculative decoding needs degrees that the engine's version speculates at: one stage, attention ranks without copies, a draft cut like its model."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, finding
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def stages(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report stages where the engine speculates on one alone."""
    if _speculates(question) and degrees.pipeline_parallel > 1:
        engine = question.engine
        message = f"{engine.title} {engine.version} does not speculate over {degrees.pipeline_parallel} pipeline stages"
        yield from finding(
            engine.rule("speculation_stages"), "SPECULATION_NOT_SUPPORTED", message, "keep to one stage: `parallelism: {pp: 1}`"
        )


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report a draft of its own or n-grams beside data-parallel attention, and a draft that is whole on every rank of several."""
    if not _speculates(question):
        return
    engine, draft = question.engine, question.architecture.draft
    title = f"{engine.title} {engine.version}"
    if degrees.data_parallel > 1 and (draft is None or not draft.shares_ends):
        message = f"{title} does not speculate with {'n-grams' if draft is None else 'a draft model'} beside {degrees.data_parallel} attention ranks"
        hint = "keep to one: `parallelism: {dp: 1}`, or use the checkpoint's own layers"
        yield from finding(engine.rule("speculation", "attention_dp"), "SPECULATION_NOT_SUPPORTED", message, hint)
    if draft is not None and draft.alone and degrees.tensor_parallel > 1:
        message = f"{title} cuts a draft like its model over {degrees.tensor_parallel} ranks, and does not keep it whole on each"
        hint = "leave `tp: 1` of `speculative` out"
        yield from finding(engine.rule("speculation", "whole_draft"), "SPECULATION_NOT_SUPPORTED", message, hint)


def _speculates(question: Question) -> bool:
    return question.architecture.draft is not None or question.architecture.speculation is not None

"""Layers that attend to images need an engine that keeps a second cache for them."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, finding
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report a model with cross-attention on an engine version that does not serve one, whatever the degrees."""
    del degrees
    if question.architecture.looks_at_images:
        engine = question.engine
        message = f"{question.architecture.name} has cross-attention layers, and {engine.title} {engine.version} serves no such model"
        yield from finding(engine.rule("cross_attention"), "CROSS_ATTENTION_NOT_SERVED", message, "take vllm 0.10, sglang or tensorrt-llm")

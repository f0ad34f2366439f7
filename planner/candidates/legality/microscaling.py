"""Microscaled 4-bit floats (MXFP4 in blocks of 32, NVFP4 of 16): the inputs of a shard are a whole number of blocks."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, finding
from planner.candidates.legality.widths import misfits
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report matrices whose inputs are cut within a block, for engines that do not pad that format."""
    for scheme, tensors in question.schemes():
        if scheme.group is None or scheme.weights not in ("mxfp4", "nvfp4", "mxfp8", "mxfp6"):
            continue
        rule = question.engine.rule("microscaling", scheme.weights)
        for misfit in misfits(tensors, degrees, None, scheme.group, f"{scheme.weights} block"):
            yield from finding(rule, "QUANT_GROUP_NOT_DIVISIBLE", misfit.message, misfit.hint)

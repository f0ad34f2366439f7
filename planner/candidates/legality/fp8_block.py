"""Block-scaled FP8 (128 x 128): the shard of every matrix is a whole number of blocks, each family by its own width."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, finding
from planner.candidates.legality.widths import misfits
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report matrices cut within a scale block: attention, dense, routed experts and shared experts alike."""
    for scheme, tensors in question.schemes():
        rows, columns = scheme.block or (None, None)
        for misfit in misfits(tensors, degrees, rows, columns, "quantization block"):
            rule = question.engine.rule("fp8_block", misfit.tensor.family)
            yield from finding(rule, "QUANT_BLOCK_NOT_DIVISIBLE", misfit.message, misfit.hint)

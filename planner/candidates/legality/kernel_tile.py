"""Marlin multiplies tiles of 128 inputs by 64 outputs: shards of weight-only 8-bit matrices are whole tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from planner.candidates.legality.question import Question, finding
from planner.candidates.legality.widths import misfits
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees

TILE_INPUTS: Final = 128
TILE_OUTPUTS: Final = 64
WEIGHT_ONLY: Final = ("marlin", "w8a16", "weight-only", "weight only")


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report shards that are no whole tiles, for 8-bit weights without groups that only Marlin can multiply.

    These are 8-bit weight-only checkpoints, and FP8 ones on GPUs without FP8 arithmetic. Grouped 4-bit formats have other kernels to fall back on.
    """
    for scheme, tensors in question.schemes():
        if scheme.group is not None or scheme.block is not None:
            continue
        weight_only = any(word in scheme.method.lower() for word in WEIGHT_ONLY)
        expanded = scheme.weights == "fp8" and question.gpu.vendor == "nvidia" and not question.gpu.computes("fp8")
        if not expanded and not (weight_only and scheme.weights in ("int8", "fp8")):
            continue
        for misfit in misfits(tensors, degrees, TILE_OUTPUTS, TILE_INPUTS, "Marlin tile"):
            hint = f"{misfit.hint}; pipeline stages keep matrices whole"
            yield from finding(question.engine.rule("kernel_tile"), "KERNEL_TILE", misfit.message, hint)

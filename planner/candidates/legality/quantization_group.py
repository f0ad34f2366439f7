"""Group-scaled integers (AWQ, GPTQ): the inputs of a shard are a whole number of groups, the attention output projection included."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, finding
from planner.candidates.legality.widths import misfits
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report matrices whose inputs are cut within a group: scales would be read for the wrong weights, with or without an error."""
    for scheme, tensors in question.schemes():
        if scheme.group is None or scheme.weights not in ("int4", "int8"):
            continue
        for misfit in misfits(tensors, degrees, None, scheme.group, "quantization group"):
            rule = question.engine.rule("quantization_group", misfit.tensor.family)
            yield from finding(rule, "QUANT_GROUP_NOT_DIVISIBLE", misfit.message, misfit.hint)

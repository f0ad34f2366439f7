"""How wide each family's matrices are on one rank, in exact fractions: what quantization blocks must divide.

attention        outputs H h / t, inputs of the output projection H h_v / t
dense MLP        f / t           shared expert   f_s / t
routed expert    f_e e / (t dp): an expert is split over the t dp / e ranks that share it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from planner.catalog.architecture import AttentionKind, LayerKind, ModelArchitecture
from planner.plan.shape import Degrees


@dataclass(frozen=True, slots=True)
class Width:
    """Outputs or inputs that one rank holds of a family's matrices; `cut` is over how many ranks the whole of it is split.

    `axis` is "outputs" for column-parallel matrices (q, gate, up) and "inputs" for row-parallel ones (o, down).
    """

    family: str
    axis: str
    whole: int
    cut: Fraction

    @property
    def held(self) -> Fraction:
        """What one rank holds."""
        return self.whole / self.cut


def layer_widths(kind: LayerKind, degrees: Degrees) -> Iterator[Width]:
    """Widths of one layer's matrices that parallelism cuts."""
    tensor_parallel = Fraction(degrees.tensor_parallel)
    attention, part = kind.attention, kind.feed_forward
    if attention is not None:
        if attention.kind is not AttentionKind.MLA:
            yield Width("attention", "outputs", attention.heads * attention.head_dim, tensor_parallel)
        yield Width("attention", "inputs", attention.heads * attention.value_head_dim, tensor_parallel)
    if part is not None:
        shards = Fraction(degrees.stage_gpus, degrees.expert_parallel)
        for family, whole, cut in (
            ("mlp", part.width, tensor_parallel),
            ("expert", part.expert_width if part.experts else 0, shards),
            ("shared_expert", part.shared_width, tensor_parallel),
        ):
            if whole:
                yield Width(family, "outputs", whole, cut)
                yield Width(family, "inputs", whole, cut)


def model_widths(architecture: ModelArchitecture, degrees: Degrees) -> tuple[Width, ...]:
    """All distinct widths of a model."""
    return tuple(dict.fromkeys(width for kind, _ in architecture.kind_counts() for width in layer_widths(kind, degrees)))

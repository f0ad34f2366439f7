"""How wide the cut matrices of each family are on one rank, in exact fractions: what quantization blocks must divide.

Attention has outputs H h / t (and of its kv projections K h / min(t, K)), and inputs H h_v / t of its output projection; a dense MLP f / t; a shared
expert f_s / t; a routed expert f_e e / (t dp), for it is split over the t dp / e ranks that share it. Recurrent mixers have their inner width / t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from planner.audit.compressed import compressed_widths
from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind, ModelArchitecture, RecurrentState
from planner.plan.shape import Degrees

OUTPUTS, INPUTS = "outputs", "inputs"


@dataclass(frozen=True, slots=True)
class Width:
    """Outputs or inputs of a family's matrices, before the cut and over how many ranks they are cut.

    `axis` is "outputs" for column-parallel matrices (q, gate, up) and "inputs" for row-parallel ones (o, down).
    """

    family: str
    axis: str
    whole: int
    ranks: int

    @property
    def held(self) -> Fraction:
        """What one rank holds."""
        return Fraction(self.whole, self.ranks)


def attention_widths(attention: Attention, tensor_parallel: int) -> Iterator[Width]:
    """Widths of softmax attention; of MLA the up projections and the output projection."""
    heads, kv_heads = attention.heads, attention.kv_heads
    if attention.kind is AttentionKind.COMPRESSED:
        for axis, whole in compressed_widths(attention):
            yield Width("attention", axis, whole, tensor_parallel)
        return
    if attention.kind is AttentionKind.MLA:
        nope = attention.head_dim - (attention.rope_head_dim or 0) if attention.nope_head_dim is None else attention.nope_head_dim
        yield Width("attention", OUTPUTS, heads * (nope + (attention.rope_head_dim or 0)), tensor_parallel)
        yield Width("attention", OUTPUTS, heads * (nope + attention.value_head_dim), tensor_parallel)
        if attention.output_gate:
            yield Width("attention", OUTPUTS, heads * attention.value_head_dim, tensor_parallel)
    else:
        yield Width("attention", OUTPUTS, heads * attention.head_dim * (2 if attention.output_gate else 1), tensor_parallel)
        yield Width("attention", OUTPUTS, kv_heads * attention.head_dim, min(tensor_parallel, kv_heads))
        yield Width("attention", OUTPUTS, kv_heads * attention.value_head_dim, min(tensor_parallel, kv_heads))
    yield Width("attention", INPUTS, heads * attention.value_head_dim, tensor_parallel)


def feed_forward_widths(part: FeedForward, degrees: Degrees) -> Iterator[Width]:
    """Widths of the dense MLP, the routed experts and the shared ones."""
    tensor_parallel = degrees.tensor_parallel
    together = max(degrees.stage_gpus // degrees.expert_parallel, 1)
    for family, whole, ranks in (
        ("mlp", part.width, tensor_parallel),
        ("expert", part.expert_width if part.experts else 0, together),
        ("shared_expert", part.shared_width, tensor_parallel),
    ):
        if whole:
            yield Width(family, OUTPUTS, whole, ranks)
            yield Width(family, INPUTS, whole, ranks)


def recurrent_widths(state: RecurrentState, tensor_parallel: int) -> Iterator[Width]:
    """Widths of the input and output projections of a recurrent mixer."""
    inner = state.heads * state.head_dim
    if state.kind in {"mamba2", "gated_delta"}:
        yield Width("recurrent", OUTPUTS, 2 * inner, tensor_parallel)
        yield Width("recurrent", OUTPUTS, 2 * state.groups * state.state_size, min(tensor_parallel, max(state.groups, 1)))
        yield Width("recurrent", OUTPUTS, (2 if state.kind == "gated_delta" else 1) * state.heads, tensor_parallel)
        yield Width("recurrent", INPUTS, inner, tensor_parallel)


def layer_widths(kind: LayerKind, degrees: Degrees) -> Iterator[Width]:
    """Widths of one layer's matrices that parallelism cuts."""
    if kind.attention is not None:
        yield from attention_widths(kind.attention, degrees.tensor_parallel)
    if kind.recurrent is not None:
        yield from recurrent_widths(kind.recurrent, degrees.tensor_parallel)
    if kind.feed_forward is not None:
        yield from feed_forward_widths(kind.feed_forward, degrees)


def model_widths(architecture: ModelArchitecture, degrees: Degrees) -> tuple[Width, ...]:
    """All distinct widths of a model that more than one rank cuts."""
    found = (width for kind, _ in architecture.kind_counts() for width in layer_widths(kind, degrees))
    return tuple(dict.fromkeys(width for width in found if width.ranks > 1))

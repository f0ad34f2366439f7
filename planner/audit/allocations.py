"""What an allocator adds to the large matrices of a layer, by the auditor's own count.

PyTorch reserves 2 MiB segments for allocations of 10 MiB and more, and splits a rest off only when it is above 1 MiB. Engines hold q, k and v in one
allocation, gate and up in one, and all experts of a rank in two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Protocol

from planner.audit.compressed import compressed_allocations
from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind
from planner.plan.shape import Degrees

MIB = 2**20
LARGE, SEGMENT, KEPT_REST = 10 * MIB, 2 * MIB, MIB


class Stored(Protocol):
    """Bytes an element takes by family."""

    def per_element(self, family: str) -> Fraction:
        """Bytes one element of `family` takes [B]."""


def rounding(size: Fraction) -> Fraction:
    """Bytes by which one allocation of `size` grows [B]."""
    rest = -size % SEGMENT
    return rest if size >= LARGE and rest <= KEPT_REST else Fraction(0)


def layer_rounding(kind: LayerKind, hidden: int, degrees: Degrees, elements: Mapping[str, Fraction], store: Stored) -> Fraction:
    """Bytes by which the allocations of one layer on one rank grow [B]; `elements` are what the rank holds of every family."""
    total = Fraction(0)
    if kind.attention is not None:
        sizes = _attention(kind.attention, hidden, degrees)
        total += sum((rounding(size * store.per_element(family)) for family, size in sizes), Fraction(0))
    if kind.feed_forward is not None:
        for family, size in _feed_forward(kind.feed_forward, hidden, degrees, elements):
            total += rounding(size * store.per_element(family))
    return total


def _attention(attention: Attention, hidden: int, degrees: Degrees) -> Iterator[tuple[str, Fraction]]:
    """How every allocation of an attention mixer is stored, and its elements on one rank."""
    if attention.kind is AttentionKind.COMPRESSED:
        yield from compressed_allocations(attention, hidden, degrees.tensor_parallel)
        return
    heads = Fraction(attention.heads, degrees.tensor_parallel)
    yield "attention", heads * attention.value_head_dim * hidden
    if attention.kind is not AttentionKind.MLA:
        kv_heads = Fraction(max(attention.kv_heads, degrees.tensor_parallel), degrees.tensor_parallel)
        query = heads * attention.head_dim * (2 if attention.output_gate else 1)
        yield "attention", hidden * (query + kv_heads * (attention.head_dim + attention.value_head_dim))
        return
    latent, rope = attention.kv_lora_rank or 0, attention.rope_head_dim or 0
    nope = attention.head_dim - rope if attention.nope_head_dim is None else attention.nope_head_dim
    if attention.q_lora_rank:
        yield "attention", Fraction(attention.q_lora_rank * hidden)
    yield "attention", heads * (nope + rope) * (attention.q_lora_rank or hidden)
    yield "attention", Fraction((latent + rope) * hidden)
    yield "attention", heads * (nope + attention.value_head_dim) * latent
    if attention.output_gate:
        yield "attention", heads * attention.value_head_dim * hidden


def _feed_forward(part: FeedForward, hidden: int, degrees: Degrees, elements: Mapping[str, Fraction]) -> Iterator[tuple[str, Fraction]]:
    """Family and elements of every allocation of a feed-forward part on one rank; the way up is one, the way down another."""
    up = 2 if part.gated else 1
    for family, width in (("mlp", part.width), ("shared_expert", part.shared_width)):
        yield family, Fraction(up * width * hidden, degrees.tensor_parallel)
        yield family, Fraction(width * hidden, degrees.tensor_parallel)
    yield "expert", elements["expert"] * up / (up + 1)
    yield "expert", elements["expert"] / (up + 1)

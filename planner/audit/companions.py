"""What a deployment holds beside its model, by the auditor's own count: adapter slots in every layer, a draft on the last stage.

A slot of rank r on a matrix of m outputs and n inputs takes r (m + n) elements in 16 bits; tensor parallelism divides m of matrices cut by output and n of those
cut by input.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from planner.audit.compressed import compressed_sides
from planner.audit.families import Family
from planner.audit.kv_cache import Context, sequence_bytes_by_stage
from planner.audit.weights import weights_by_stage
from planner.catalog.architecture import Attention, AttentionKind, Draft, LayerKind
from planner.catalog.engines import Engine
from planner.cost.setting import Precision
from planner.plan.shape import Degrees


def with_companions(weights: list[Fraction], family: Family, precision: Precision, engine: Engine) -> list[Fraction]:
    """Weights of every stage [B] with the adapter slots of its layers, and the draft on the last one."""
    architecture, first = family.architecture, 0
    held = list(weights)
    if architecture.adapters is not None:
        room = 2 * architecture.adapters.slots * architecture.adapters.rank
        for stage, count in enumerate(family.shape.partition):
            kinds = (architecture.layer(index) for index in range(first, first + count))
            held[stage] += room * sum(
                (_sides(kind, architecture.hidden_size, family.degrees.tensor_parallel) for kind in kinds), Fraction(0)
            )
            first += count
    if architecture.draft is not None:
        held[-1] += _draft_bytes(architecture.draft, family.degrees, precision, engine)
    return held


def draft_sequence_bytes(family: Family, precision: Precision, context: Context) -> Fraction:
    """Bytes of one sequence in the cache of the draft on a rank of the last stage [B]."""
    draft = family.architecture.draft
    if draft is None:
        return Fraction(0)
    longer = Context(context.tokens + draft.tokens, context.block, context.keeps_windows)
    degrees = Degrees(_ranks(draft, family.degrees))
    return sequence_bytes_by_stage(draft.architecture, _precision(draft, precision), degrees, (draft.architecture.layers,), longer)[0]


def _ranks(draft: Draft, degrees: Degrees) -> int:
    return 1 if draft.alone else degrees.tensor_parallel


def _precision(draft: Draft, precision: Precision) -> Precision:
    scheme = draft.architecture.quantization
    return Precision(draft.architecture.dtype if scheme is None else scheme.weights, precision.kv_cache, precision.activations, scheme)


def _draft_bytes(draft: Draft, degrees: Degrees, precision: Precision, engine: Engine) -> Fraction:
    own, ranks = draft.architecture, _ranks(draft, degrees)
    cut = Degrees(ranks, 1, degrees.expert_parallel, degrees.data_parallel) if draft.shares_ends else Degrees(ranks)
    whole = weights_by_stage(own, _precision(draft, precision), engine, cut, (own.layers,))[0]
    if not draft.shares_ends:
        return whole
    twice = replace(own, layer_sequence=own.layer_sequence * 2)
    both = weights_by_stage(twice, _precision(draft, precision), engine, cut, (twice.layers,))[0]
    return both - whole  # the ends, which are the model's, cancel


def _sides(kind: LayerKind, hidden: int, ranks: int) -> Fraction:
    """Sum of both sides of every matrix that takes adapters, on one rank."""
    total = Fraction(0)
    if kind.attention is not None:
        total += _attention_sides(kind.attention, hidden, ranks)
    if kind.recurrent is not None:
        inner, grouped = kind.recurrent.heads * kind.recurrent.head_dim, 2 * kind.recurrent.groups * kind.recurrent.state_size
        total += Fraction(3 * inner + grouped, ranks) + 2 * hidden
    part = kind.feed_forward
    for width in (part.width, part.shared_width) if part is not None else ():
        matrices = 3 if part is not None and part.gated else 2
        total += matrices * (hidden + Fraction(width, ranks)) if width else 0
    return total


def _attention_sides(attention: Attention, hidden: int, ranks: int) -> Fraction:
    if attention.kind is AttentionKind.COMPRESSED:
        return compressed_sides(attention, hidden, ranks)
    heads = Fraction(attention.heads, ranks)
    total = hidden + heads * attention.value_head_dim
    if attention.kind is not AttentionKind.MLA:
        kv_heads = Fraction(max(attention.kv_heads, ranks), ranks)
        query = heads * attention.head_dim * (2 if attention.output_gate else 1)
        return total + 3 * hidden + query + kv_heads * (attention.head_dim + attention.value_head_dim)
    latent, rope = attention.kv_lora_rank or 0, attention.rope_head_dim or 0
    nope = attention.head_dim - rope if attention.nope_head_dim is None else attention.nope_head_dim
    total += heads * (nope + rope) + (attention.q_lora_rank or hidden)
    if attention.q_lora_rank:
        total += attention.q_lora_rank + hidden
    if attention.output_gate:
        total += heads * attention.value_head_dim + hidden
    return total + (latent + rope + hidden) + heads * (nope + attention.value_head_dim) + latent

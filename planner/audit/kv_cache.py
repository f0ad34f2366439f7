"""Bytes of context one rank holds, stage by stage, in closed form per layer kind.

The auditor's own count, exact in integers and fractions. A sequence of C tokens, in blocks of the engine's size, takes in one layer of one rank

    full attention      ceil(K/t) (h_k + h_v) b C        sliding, chunked    the same over min(C, window + block) tokens
    cross-attention     the same over the tokens of the images
    MLA                 (r_kv + rope) b C                recurrent           (state + convolution) b_model / t, whatever C is
    compressed          `audit.compressed`

MLA's latent is not divided by tensor parallelism: every rank keeps all of it, and all of an indexer's keys (index_head_dim b C).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from planner.audit.compressed import compressed_cache
from planner.audit.weights import stage_kinds
from planner.catalog.architecture import Attention, AttentionKind, LayerKind, ModelArchitecture
from planner.catalog.dtypes import bytes_per_element
from planner.cost.setting import Precision
from planner.plan.shape import Degrees

WINDOWED = frozenset({AttentionKind.SLIDING, AttentionKind.CHUNKED})


@dataclass(frozen=True)
class Context:
    """How long a sequence is when its memory is counted, and how the engine keeps it.

    `tokens` of one sequence, `block` tokens of one cache block; `keeps_windows` is False for engines that keep the whole context of windowed
    layers in models that mix both.
    """

    tokens: int
    block: int
    keeps_windows: bool = True


def token_bytes(attention: Attention, kv_cache: str, tensor_parallel: int) -> Fraction:
    """Bytes one token leaves in the cache of one layer on one rank [B]."""
    if attention.kind is AttentionKind.MLA:
        elements = (attention.kv_lora_rank or 0) + (attention.rope_head_dim or 0)
    else:
        elements = -(-attention.kv_heads // tensor_parallel) * (attention.head_dim + attention.value_head_dim)
    return (elements + (attention.index_head_dim or 0)) * Fraction(bytes_per_element(kv_cache))


def tokens_held(attention: Attention, context: Context) -> int:
    """Tokens a layer keeps of a context, in whole blocks: all of it, its window, or the images beside it."""
    if attention.kind is AttentionKind.CROSS:
        return -(-attention.images * attention.image_tokens // context.block) * context.block
    whole = -(-context.tokens // context.block) * context.block
    if attention.kind not in WINDOWED or attention.window is None or not context.keeps_windows:
        return whole
    edge = context.block if context.block > 1 else 0  # the window may begin in the middle of a block
    return min(whole, -(-attention.window // context.block) * context.block + edge)


def layer_bytes(kind: LayerKind, architecture: ModelArchitecture, precision: Precision, tensor_parallel: int, context: Context) -> Fraction:
    """Bytes one sequence holds in one layer of one rank [B]."""
    held = Fraction(0)
    if kind.attention is not None and kind.attention.kind is AttentionKind.COMPRESSED:
        held += compressed_cache(kind.attention, precision.kv_cache, context.tokens)
    elif kind.attention is not None:
        held += token_bytes(kind.attention, precision.kv_cache, tensor_parallel) * tokens_held(kind.attention, context)
    if kind.recurrent is not None:
        elements = kind.recurrent.state_elements + kind.recurrent.conv_elements
        held += elements * Fraction(bytes_per_element(architecture.dtype)) / min(tensor_parallel, kind.recurrent.heads)
    return held


def mixes_windows(architecture: ModelArchitecture) -> bool:
    """Whether windowed layers stand beside layers of another kind of attention."""
    return len({kind.attention.kind for kind, _ in architecture.kind_counts() if kind.attention is not None}) > 1


def sequence_bytes_by_stage(
    architecture: ModelArchitecture, precision: Precision, degrees: Degrees, partition: tuple[int, ...], context: Context
) -> list[Fraction]:
    """Bytes one sequence holds on one rank of every stage [B], first stage first."""
    per_kind = [layer_bytes(kind, architecture, precision, degrees.tensor_parallel, context) for kind in architecture.layer_kinds]
    return [sum((layers * per_kind[kind] for kind, layers in kinds.items()), Fraction(0)) for kinds in stage_kinds(architecture, partition)]

"""Attention over compressed tokens (DeepSeek-V4): every layer a window, most of them compressed tokens beside it at a rate of their own.

`compress_ratios` gives each layer its rate, the prediction layers' last: 0 = the window alone, 4 = entries that an indexer picks from (CSA), 128 = entries that are all
attended to (HCA). Source: the technical report and the modelling code of deepseek-ai/DeepSeek-V4-Pro.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind
from planner.catalog.hf_config.attention import HEADS
from planner.catalog.hf_config.fields import Fields

INDEXED: Final = 4
RATIOS: Final = (0, INDEXED, 128)
NEEDED: Final = ("compress_ratios", "o_lora_rank", "o_groups", "hc_mult", "num_hash_layers")


def compressed_layers(fields: Fields, part: FeedForward, layers: int) -> list[LayerKind]:
    """Read every layer, first to last, and the prediction layer after them; `part` is the mixture of experts that all of them have.

    The first `num_hash_layers` look their experts up by token instead of scoring them. `hc_mult` hidden states of a token run beside each other.
    """
    fields.lack(*(name for name in NEEDED if not fields.has(name)))
    ratios = _ratios(fields, layers)
    streams = fields.check("hc_mult", maximum=64) or 1
    hashed = fields.check("num_hash_layers", minimum=0) or 0
    looked_up = replace(part, routing_table=fields.check("vocab_size") or 0)
    kinds = {ratio: _attention(fields, ratio) for ratio in dict.fromkeys(ratios)}
    return [
        LayerKind(kinds[ratio], None, looked_up if position < hashed else part, mixed_streams=streams)
        for position, ratio in enumerate(ratios)
    ]


def _ratios(fields: Fields, layers: int) -> list[int]:
    """Rates of all layers and of one prediction layer."""
    listed = fields.numbers("compress_ratios")
    extra = fields.check("num_nextn_predict_layers", minimum=0) or 0
    if listed is None:
        return [0] * (layers + 1)
    if len(listed) not in {layers, layers + extra}:
        fields.clash("compress_ratios", f"has {len(listed)} items for {layers} layers", "num_hidden_layers", "num_nextn_predict_layers")
    strange = sorted(set(listed) - set(RATIOS))
    if strange:
        known = ", ".join(map(str, RATIOS))
        fields.unknown("compress_ratios", f"holds rates that are not modelled: {', '.join(map(str, strange[:5]))}", f"known: {known}")
    own, after = listed[:layers], listed[layers : layers + 1]
    return [ratio if ratio in RATIOS else 0 for ratio in [*own, *[0] * (layers - len(own)), *(after or [0])]]


def _attention(fields: Fields, ratio: int) -> Attention:
    heads = fields.need(*HEADS, maximum=65_536)
    head_dim = fields.need("head_dim")
    rope = fields.need("qk_rope_head_dim", minimum=0)
    groups = fields.check("o_groups", maximum=65_536) or 1
    if heads % groups:
        fields.clash("o_groups", f"({groups}) does not divide the {heads} attention heads", HEADS[0])
    if rope > head_dim:
        fields.clash("qk_rope_head_dim", f"({rope}) exceeds head_dim {head_dim}", "head_dim")
    indexed = ratio == INDEXED
    return Attention(
        kind=AttentionKind.COMPRESSED,
        heads=heads,
        kv_heads=1,
        head_dim=head_dim,
        value_head_dim=head_dim,
        window=fields.need("sliding_window"),
        q_lora_rank=fields.need("q_lora_rank"),
        nope_head_dim=head_dim - rope,
        rope_head_dim=rope,
        index_heads=fields.need("index_n_heads") if indexed else None,
        index_head_dim=fields.need("index_head_dim") if indexed else None,
        index_topk=fields.need("index_topk") if indexed else None,
        compress_ratio=ratio,
        output_groups=groups,
        output_lora_rank=fields.check("o_lora_rank") or 1,
    )

"""Layers found by architecture search: each with its own attention and MLP, or none (`block_configs` of DeciLM and Nemotron-NAS)."""

from __future__ import annotations

from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind
from planner.catalog.hf_config.attention import HEADS, head_sizes
from planner.catalog.hf_config.fields import Fields


def searched_layers(fields: Fields, hidden: int, layers: int) -> list[LayerKind]:
    """Read every layer of `block_configs`.

    A block's attention has `n_heads_in_group` query heads a kv head, or is a no-op, or a plain linear map; its MLP has `ffn_mult` (times hidden size,
    2/3 of it, rounded up to 256, as `_ffn_mult_to_intermediate_size` of the published code) or is a no-op or a linear map.
    """
    blocks = fields.items("block_configs")
    if blocks is None:
        fields.lack("block_configs")
        return [LayerKind()] * layers
    if len(blocks) != layers:
        fields.clash("block_configs", f"describes {len(blocks)} layers, num_hidden_layers says {layers}", "num_hidden_layers")
    heads = fields.need(*HEADS, maximum=65_536)
    head_dim = head_sizes(fields, hidden, heads)
    found = []
    for index, block in enumerate(blocks[:layers]):
        if not isinstance(block, dict):
            fields.refuse(f"block_configs[{index}]", "is not a mapping")
            continue
        part = Fields(block, f"block_configs[{index}].", fields)
        found.append(LayerKind(_attention(part, heads, head_dim), None, _feed_forward(part, hidden)))
    return found + [LayerKind()] * (layers - len(found))


def _attention(block: Fields, heads: int, head_dim: int) -> Attention | None:
    part = block.nested("attention")
    if part is None:
        block.lack("attention")
        return None
    if part.flag("no_op", default=False):
        return None
    if part.flag("replace_with_linear", default=False):
        part.unknown("replace_with_linear", "puts a linear map in place of attention, which is not modelled")
        return None
    group = part.need("n_heads_in_group", maximum=65_536)
    if heads % group:
        part.refuse("n_heads_in_group", f"({group}) does not divide the {heads} attention heads")
    return Attention(AttentionKind.FULL, heads, max(1, heads // group), head_dim, head_dim)


def _feed_forward(block: Fields, hidden: int) -> FeedForward | None:
    part = block.nested("ffn")
    if part is None:
        block.lack("ffn")
        return None
    if part.flag("no_op", default=False):
        return None
    if part.flag("replace_with_linear", default=False):
        part.unknown("replace_with_linear", "puts a linear map in place of the MLP, which is not modelled")
        return None
    width = part.check("intermediate_size")
    if width is not None:
        return FeedForward(width=width)
    factor = part.config.get("ffn_mult")
    if not isinstance(factor, int | float) or isinstance(factor, bool) or not 0 < factor < 1000:
        part.lack("ffn_mult") if factor is None else part.refuse("ffn_mult", "is not a positive factor")
        return None
    wanted = int(2 * factor * hidden / 3)
    return FeedForward(width=-(-wanted // 256) * 256)

"""Weights of attention over compressed tokens, and of the hyper-connections and routing tables that come with it (DeepSeek-V4).

With H heads h wide, query rank r_q, g output groups of rank r_o, ratio m and c = 2 where groups of tokens overlap, else 1:

    query            r_q x d, H h x r_q                     the first whole on every rank, the second cut by head
    key = value      h x d                                  one vector for all heads, whole on every rank
    output           g r_o x H h / g, d x g r_o             cut by group
    compressor       2 matrices c h x d, positions m x c h  values and gates; whole on every rank, 16 bits, positions in 32
    indexer          H_i h_i x r_q, H_i x d, a compressor h_i wide, whole on every rank
    connections      (2 + n) n x n d per part, n x n d before the head, for n residual streams, in 32 bits

Shapes, formats and bytes: headers of deepseek-ai/DeepSeek-V4-Flash, which this count meets to the byte but for scales of a few small matrices.
"""

from __future__ import annotations

from planner.catalog.architecture import Attention, FeedForward
from planner.cost.tensor import Split, Tensor


def compressed_attention(attention: Attention, hidden: int) -> tuple[Tensor, ...]:
    """Projections, compressor and indexer of one layer."""
    heads, width = attention.heads, attention.head_dim
    rank, groups = attention.q_lora_rank or 0, attention.output_groups or 1
    inner = groups * (attention.output_lora_rank or 0)
    tensors = [
        Tensor("q_a_proj", "attention", rank, hidden, 1, Split.REPLICATED),
        Tensor("q_b_proj", "attention", heads * width, rank, 1, Split.ROWS, heads),
        Tensor("kv_proj", "attention", width, hidden, 1, Split.REPLICATED),
        Tensor("o_a_proj", "attention", inner, heads * width // groups, 1, Split.ROWS, groups),
        Tensor("o_b_proj", "attention", hidden, inner, 1, Split.COLUMNS, groups),
        Tensor("latent_norms", "norm", rank + width, 1, 1, Split.REPLICATED),
        Tensor("attention_sinks", "norm", heads, 1, 1, Split.ROWS, heads, dtype="fp32"),
    ]
    if attention.compress_ratio:
        tensors += _compressor("compressor", attention, width, hidden)
    if attention.index_heads and attention.index_head_dim:
        index_rows = attention.index_heads * attention.index_head_dim
        tensors += [
            Tensor("index_q", "attention", index_rows, rank, 1, Split.REPLICATED, attention.index_heads),
            Tensor("index_weights", "router", attention.index_heads, hidden, 1, Split.REPLICATED),
            *_compressor("index_compressor", attention, attention.index_head_dim, hidden),
        ]
    return tuple(tensors)


def _compressor(name: str, attention: Attention, width: int, hidden: int) -> list[Tensor]:
    made_of = (2 if attention.overlaps else 1) * width
    return [
        Tensor(name, "attention", made_of, hidden, 2, Split.REPLICATED, kept_high=True),
        Tensor(f"{name}_positions", "norm", attention.compress_ratio * made_of, 1, 1, Split.REPLICATED, dtype="fp32"),
        Tensor(f"{name}_norm", "norm", width, 1, 1, Split.REPLICATED),
    ]


def routing_tables(part: FeedForward | None) -> list[Tensor]:
    """Table of the experts of every token, in layers that look them up."""
    if part is None or not part.routing_table:
        return []
    return [Tensor("routing_table", "embedding", part.routing_table * part.experts_per_token, 1, 1, Split.REPLICATED, dtype="int64")]


def layer_streams(streams: int, hidden: int, parts: int) -> list[Tensor]:
    """Matrices that mix the residual streams before and after each of the `parts` of a layer."""
    if streams == 1:
        return []
    return [Tensor("connections", "norm", (2 + streams) * streams, streams * hidden, parts, Split.REPLICATED, dtype="fp32")]


def head_streams(streams: int, hidden: int) -> tuple[Tensor, ...]:
    """Matrix that joins the residual streams before the output head."""
    return (Tensor("head_connections", "norm", streams, streams * hidden, 1, Split.REPLICATED, dtype="fp32"),) if streams > 1 else ()

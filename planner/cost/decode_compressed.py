"""Attention over compressed tokens (DeepSeek-V4): what one sequence makes a rank read and multiply, and the pairs that a prompt has.

A new token reads its window and, of C / m compressed entries, all of them or the `index_topk` that the indexer picks after scoring every key:

    read      min(C, w) + min(C / m, k) entries, and C / m keys      whole on every rank: nothing of it is divided by t
    multiply  4 h H / t for every entry, 2 h_i H_i for every key     an entry is key and value; every rank scores for itself
"""

from __future__ import annotations

import numpy as np

from planner.catalog.architecture import Attention
from planner.cost.memory_compressed import entry_bytes, key_bytes
from planner.cost.setting import FloatArray


def entries_read(attention: Attention, context: FloatArray) -> FloatArray:
    """Entries that one new token attends to, at `context` tokens held."""
    context = np.asarray(context, dtype=np.float64)
    near = np.minimum(context, float(attention.window or 0))
    if not attention.compress_ratio:
        return near
    far = context / attention.compress_ratio
    return near + (far if attention.index_topk is None else np.minimum(far, float(attention.index_topk)))


def keys_scored(attention: Attention, context: FloatArray) -> FloatArray:
    """Indexer keys that one new token is compared with."""
    if attention.index_heads is None or not attention.compress_ratio:
        return np.zeros(np.shape(context))
    return np.asarray(context, dtype=np.float64) / attention.compress_ratio


def bytes_read(attention: Attention, kv_cache: str, context: FloatArray) -> FloatArray:
    """Bytes of the cache that one new token reads on any rank [B]."""
    return entries_read(attention, context) * entry_bytes(attention, kv_cache) + keys_scored(attention, context) * key_bytes(
        attention, kv_cache
    )


def decode_flops(attention: Attention, tensor_parallel: FloatArray, context: FloatArray) -> FloatArray:
    """FLOP of one new token on a rank, per shape [n]."""
    attended = 4.0 * attention.heads * attention.head_dim * entries_read(attention, context) / tensor_parallel
    scored = 2.0 * (attention.index_heads or 0) * (attention.index_head_dim or 0) * keys_scored(attention, context)
    return np.asarray(attended + scored, dtype=np.float64)


def prompt_flops(attention: Attention, tensor_parallel: FloatArray, tokens: FloatArray) -> FloatArray:
    """FLOP of the first `tokens` tokens of a prompt on a rank, per shape [n]: entries seen and keys scored, summed over the tokens."""
    tokens = np.asarray(tokens, dtype=np.float64)
    pairs = _seen(tokens, float(attention.window or 0))
    keys = np.zeros(np.shape(tokens))
    ratio = attention.compress_ratio
    if ratio:
        most = np.inf if attention.index_topk is None else float(attention.index_topk) * ratio
        pairs = pairs + _seen(tokens, most) / ratio
        keys = keys if attention.index_heads is None else tokens**2 / 2.0 / ratio
    attended = 4.0 * attention.heads * attention.head_dim * pairs / tensor_parallel
    return np.asarray(attended + 2.0 * (attention.index_heads or 0) * (attention.index_head_dim or 0) * keys, dtype=np.float64)


def _seen(tokens: FloatArray, most: float) -> FloatArray:
    """Pairs of a token and an earlier one, of which each token sees the last `most`."""
    within = np.minimum(tokens, most)
    return np.asarray(within**2 / 2.0 + np.where(tokens > most, (tokens - within) * within, 0.0), dtype=np.float64)

"""Cache of attention over compressed tokens (DeepSeek-V4): pages of a window, of compressed entries and indexer keys, and of the compressor's state.

A sequence of C tokens keeps in a layer of ratio m, on every rank whole,

    window       min(C, window) tokens                       pages of 64
    entries      C / m, and as many indexer keys             pages of 256 / m, which stand for 256 tokens
    state        c m tokens not yet compressed, twice c h    pages of 8 (4 where groups overlap), in 32 bits; c = 2 where groups overlap, else 1

    entry        2 h                                         16 bits
                 (h - rope) + 2 rope + (h - rope) / 64 + 1   8 bits: values, rotary part in 16, a scale for each 64 values and one to fill up (584 B of 512 elements)
    key          2 h_i, or h_i + 4                           16 bits, or 8 and one scale

Pages of 8 bits are filled up to multiples of 576 B. The layout is vLLM's (vllm/models/deepseek_v4, `fp8_ds_mla`): 1,002,240 B for 256 tokens of DeepSeek-V4-Flash in all
layers, as vllm-project/vllm issue 54703 prints its groups. SGLang stores the same entries (sgl-project/sglang pull request 28033). In 16 bits a million tokens without
windows and states are 6.72 GiB of Flash and 9.62 GiB of Pro (vLLM blog on DeepSeek-V4, 2026-04-24).
"""

from __future__ import annotations

from math import ceil
from typing import Final

from planner.catalog.architecture import Attention
from planner.catalog.dtypes import bytes_per_element

BLOCK: Final = 256  # tokens that a page of compressed entries stands for
WINDOW_PAGE: Final = 64
STATE_PAGE: Final = 8
OVERLAPPED_STATE_PAGE: Final = 4
SCALED: Final = 64  # values that share a scale
KEY_SCALE: Final = 4.0
STATE_BYTES: Final = 4.0
ALIGNMENT: Final = 576


def entry_bytes(attention: Attention, kv_cache: str) -> float:
    """Bytes of one token's, or one compressed entry's, vector in the cache [B]."""
    size = bytes_per_element(kv_cache)
    if size > 1.0:
        return attention.head_dim * size
    rope = attention.rope_head_dim or 0
    values = attention.head_dim - rope
    return values * size + 2.0 * rope + ceil(values / SCALED) + 1.0


def key_bytes(attention: Attention, kv_cache: str) -> float:
    """Bytes of one indexer key in the cache [B]; 0 without an indexer."""
    size, width = bytes_per_element(kv_cache), attention.index_head_dim or 0
    return width * size + (KEY_SCALE if width and size <= 1.0 else 0.0)


def compressed_sequence_bytes(attention: Attention, kv_cache: str, context: float, chunk: float = 0.0) -> float:
    """Bytes one sequence of `context` tokens keeps in one layer of any rank [B].

    `chunk` is what a prefill step may add before windows and states move on; an engine's start-up log charges it.
    """
    entry, key = entry_bytes(attention, kv_cache), key_bytes(attention, kv_cache)
    held = _moving(attention.window or 0, WINDOW_PAGE, context, chunk) * _page(WINDOW_PAGE * entry, kv_cache)
    ratio = attention.compress_ratio
    if not ratio:
        return held
    blocks, entries = ceil(context / BLOCK), BLOCK // ratio
    made_of = 2 if attention.overlaps else 1
    rows = OVERLAPPED_STATE_PAGE if attention.overlaps else STATE_PAGE
    held += blocks * (_page(entries * entry, kv_cache) + _page(entries * key, kv_cache))
    for width in (attention.head_dim, attention.index_head_dim or 0):
        state = rows * 2.0 * made_of * width * STATE_BYTES
        held += _moving(made_of * ratio, rows, context, chunk) * _page(state, kv_cache)
    return held


def _moving(window: int, page: int, context: float, chunk: float) -> int:
    """Pages that hold a window which moves on: one more than it fills, since its edge lies within one; never more than the context fills."""
    return min(ceil(context / page), ceil((window - 1 + max(chunk, 1.0)) / page) + 1)


def _page(size: float, kv_cache: str) -> float:
    """Bytes of a page, filled up where the layout of the cache asks for it [B]."""
    return ceil(size / ALIGNMENT) * float(ALIGNMENT) if bytes_per_element(kv_cache) <= 1.0 else size

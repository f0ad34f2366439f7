"""Attention over compressed tokens (DeepSeek-V4), by the auditor's own count: elements, cache, widths and allocations of one rank.

With H heads h wide, query rank r, g output groups of rank o, ratio m, and c = 2 where an indexer picks entries, else 1, a layer of one rank has

    quantized        d (r + h) + (r H h + g o (H h / g + d)) / t + r H_i h_i
    in 16 bits       d 2 c h, d (2 c h_i + H_i); norms r + 2 h + h_i
    in 32 bits       H / t, m c h, m c h_i

A sequence of C tokens keeps whole on every rank: its window in pages of 64 tokens, C / m entries (and keys) in pages for 256 tokens each, and c m states of 2 c h numbers
in 32 bits in pages of 8, or of 4 where c = 2. An entry takes 2 h bytes in 16 bits, 584 of 512 elements in 8 (64 of them in 16, a scale for 64 of the others, one byte to
fill up), a key 2 h_i or h_i + 4; pages of 8 bits are multiples of 576 B.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from planner.catalog.architecture import Attention
from planner.catalog.dtypes import bytes_per_element

PAGE_MULTIPLE = 576


def _index(attention: Attention) -> tuple[int, int]:
    """Heads and width of the indexer; zeros without one."""
    return attention.index_heads or 0, attention.index_head_dim or 0


def _doubling(attention: Attention) -> int:
    return 2 if attention.index_heads else 1


def compressed_elements(attention: Attention, hidden: int, tensor_parallel: int) -> dict[str, Fraction]:
    """Elements of one layer's attention on one rank, by how they are stored."""
    width, rank, wide = attention.head_dim, attention.q_lora_rank or 0, attention.heads * attention.head_dim
    groups, inner = attention.output_groups or 1, (attention.output_groups or 1) * (attention.output_lora_rank or 0)
    index_heads, index_width = _index(attention)
    compressed = _doubling(attention) * (width + index_width) if attention.compress_ratio else 0
    divided = Fraction(rank * wide + inner * (wide // groups + hidden), tensor_parallel)
    return {
        "attention": hidden * (rank + width) + divided + rank * index_heads * index_width,
        "high": Fraction(hidden * (2 * compressed + index_heads)),
        "bias": Fraction(rank + width + (width + index_width if attention.compress_ratio else 0)),
        "single": Fraction(attention.heads, tensor_parallel) + attention.compress_ratio * compressed,
    }


def compressed_sides(attention: Attention, hidden: int, ranks: int) -> Fraction:
    """Sum of both sides of every matrix of one layer's attention that takes adapters, on one rank."""
    width, rank, wide = attention.head_dim, attention.q_lora_rank or 0, attention.heads * attention.head_dim
    groups, inner = attention.output_groups or 1, (attention.output_groups or 1) * (attention.output_lora_rank or 0)
    index_heads, index_width = _index(attention)
    total = (rank + hidden) + (Fraction(wide, ranks) + rank) + (width + hidden)
    total += Fraction(inner, ranks) + wide // groups + hidden + Fraction(inner, ranks)
    if index_heads:
        total += index_heads * index_width + rank + 2 * (_doubling(attention) * index_width + hidden)
    return total + (2 * (_doubling(attention) * width + hidden) if attention.compress_ratio else 0)


def compressed_allocations(attention: Attention, hidden: int, ranks: int) -> Iterator[tuple[str, Fraction]]:
    """How every allocation of one layer's attention is stored, and its elements on one rank."""
    wide, rank = attention.heads * attention.head_dim, attention.q_lora_rank or 0
    groups, inner = attention.output_groups or 1, (attention.output_groups or 1) * (attention.output_lora_rank or 0)
    index_heads, index_width = _index(attention)
    yield "attention", Fraction(rank * hidden)
    yield "attention", Fraction(wide * rank, ranks)
    yield "attention", Fraction(attention.head_dim * hidden)
    yield "attention", Fraction(inner * (wide // groups), ranks)
    yield "attention", Fraction(inner * hidden, ranks)
    yield "attention", Fraction(index_heads * index_width * rank)
    if attention.compress_ratio:
        for width in (attention.head_dim, index_width):
            yield "high", Fraction(2 * _doubling(attention) * width * hidden)


def compressed_widths(attention: Attention) -> tuple[tuple[str, int], ...]:
    """Widths that tensor parallelism cuts: outputs of the query and of the grouped output projection, inputs of the last one."""
    inner = (attention.output_groups or 1) * (attention.output_lora_rank or 0)
    return (("outputs", attention.heads * attention.head_dim), ("outputs", inner), ("inputs", inner))


def compressed_cache(attention: Attention, kv_cache: str, tokens: int) -> Fraction:
    """Bytes one sequence of `tokens` tokens keeps in one layer of any rank [B]."""
    size, width, (_, index_width) = Fraction(bytes_per_element(kv_cache)), attention.head_dim, _index(attention)
    narrow = size <= 1
    rope = attention.rope_head_dim or 0
    entry = (width - rope) * size + 2 * rope + -(-(width - rope) // 64) + 1 if narrow else width * size
    key = index_width * size + (4 if narrow and index_width else 0)

    def page(held: Fraction) -> Fraction:
        return Fraction(-(-held // PAGE_MULTIPLE) * PAGE_MULTIPLE) if narrow else held

    def moving(window: int, rows: int) -> int:
        return min(-(-tokens // rows), -(-window // rows) + 1)

    held = moving(attention.window or 0, 64) * page(64 * entry)
    if not attention.compress_ratio:
        return held
    stored = 256 // attention.compress_ratio
    held += -(-tokens // 256) * (page(stored * entry) + page(stored * key))
    doubling = _doubling(attention)
    rows = 8 // doubling
    pages = moving(doubling * attention.compress_ratio, rows)
    return held + pages * sum((page(Fraction(rows * 2 * doubling * one * 4)) for one in (width, index_width)), Fraction(0))

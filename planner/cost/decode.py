"""Attention of a decode step: what one sequence makes a rank read, and multiply, in one layer.

KV elements a token and rank: 2 ceil(K/t) h for MHA, GQA and MQA; kv_lora_rank + rope for MLA, on every rank whole. Sliding layers
read the last `window` tokens, chunked ones the current chunk (half of it on average once the context is longer), a sparse indexer its own
keys and then only the tokens it picks; cross-attention reads the tokens of the request's images. Recurrent layers read and write one constant state.
Layers over compressed tokens are in `cost.decode_compressed`.
"""

from __future__ import annotations

import numpy as np

from planner.catalog.architecture import Attention, AttentionKind, LayerKind, RecurrentState
from planner.catalog.dtypes import bytes_per_element
from planner.catalog.step_times import StepConstants, read_share
from planner.cost.compute import peak_flops
from planner.cost.decode_compressed import bytes_read, decode_flops, prompt_flops
from planner.cost.setting import FloatArray, Setting, ShapeArrays

STATE_BYTES = 4.0  # engines keep recurrent states in fp32


def attended_tokens(attention: Attention, context: FloatArray) -> FloatArray:
    """Tokens whose keys and values one new token reads in this layer, at `context` tokens held."""
    context = np.asarray(context, dtype=np.float64)
    if attention.kind is AttentionKind.CROSS:
        return np.full_like(context, attention.cross_tokens)
    if attention.index_topk is not None:
        return np.minimum(context, attention.index_topk)
    if attention.window is None or attention.kind in (AttentionKind.FULL, AttentionKind.MLA):
        return context
    if attention.kind is AttentionKind.CHUNKED:
        return np.where(context <= attention.window, context, attention.window / 2.0)
    return np.minimum(context, attention.window)


def attention_seconds(kind: LayerKind, setting: Setting, shapes: ShapeArrays, constants: StepConstants, context: FloatArray) -> FloatArray:
    """Time that one sequence adds to one layer of `kind` on a rank [s], shape [n]: the longer of reading its cache and multiplying with it.

    A step that verifies q tokens of a sequence reads its cache once and multiplies q times; of a recurrent layer it writes q states, to fall back on.
    """
    queries = _queries(setting)
    seconds = np.zeros(shapes.batch.shape)
    tensor_parallel = shapes.tensor_parallel.astype(np.float64)
    memory = setting.gpu.memory_bandwidth.value
    bandwidth = memory * read_share(constants, constants.kv_read, memory)
    if kind.attention is not None and kind.attention.kind is AttentionKind.COMPRESSED:
        read = bytes_read(kind.attention, setting.precision.kv_cache, context) / bandwidth
        seconds = seconds + np.maximum(
            read, queries * decode_flops(kind.attention, tensor_parallel, context) / _attend_rate(setting, constants)
        )
    elif kind.attention is not None:
        cache = bytes_per_element(setting.precision.kv_cache)
        read = _cache_elements(kind.attention, tensor_parallel, context) * cache / bandwidth
        seconds = seconds + np.maximum(
            read, queries * _decode_flops(kind.attention, tensor_parallel, context) / _attend_rate(setting, constants)
        )
    if kind.recurrent is not None:
        seconds = seconds + _state_elements(kind.recurrent, tensor_parallel) * (1.0 + queries) * STATE_BYTES / bandwidth
    return seconds


def prompt_attention_seconds(kind: LayerKind, setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> FloatArray:
    """Time of attention over a whole prompt in one layer of `kind` on a rank [s], shape [n].

    A prompt of S tokens, of which the first hit x S come from a prefix cache, multiplies 2 H (h_qk + h_v) FLOP for every pair of a new token and a token it
    sees; without a window those are (S^2 - (hit S)^2) / 2 pairs.
    """
    tensor_parallel = shapes.tensor_parallel.astype(np.float64)
    prompt = np.asarray(setting.prompt_tokens, dtype=np.float64)
    cached = prompt * setting.prefix_cache_hit_rate
    flops = np.zeros(shapes.batch.shape)
    if kind.attention is not None and kind.attention.kind is AttentionKind.COMPRESSED:
        flops = flops + prompt_flops(kind.attention, tensor_parallel, prompt) - prompt_flops(kind.attention, tensor_parallel, cached)
    elif kind.attention is not None:
        attention = kind.attention
        pairs = (prompt**2 - cached**2) / 2.0
        seen = _pairs_seen(attention, prompt) - _pairs_seen(attention, cached)
        flops = flops + 2.0 * attention.heads * (attention.head_dim + attention.value_head_dim) * seen / tensor_parallel
        if attention.index_heads and attention.index_head_dim:
            flops = flops + 2.0 * attention.index_heads * attention.index_head_dim * pairs
    if kind.recurrent is not None:
        flops = flops + 4.0 * kind.recurrent.state_elements * (prompt - cached) / tensor_parallel
    return flops / _attend_rate(setting, constants)


def _queries(setting: Setting) -> float:
    speculation = setting.architecture.speculation
    return 1.0 if speculation is None else speculation.queries


def _attend_rate(setting: Setting, constants: StepConstants) -> float:
    return peak_flops(setting.gpu, setting.architecture.dtype) * constants.attend


def _cache_elements(attention: Attention, tensor_parallel: FloatArray, context: FloatArray) -> FloatArray:
    tokens = attended_tokens(attention, context)
    if attention.kind is AttentionKind.MLA:
        elements = ((attention.kv_lora_rank or 0) + (attention.rope_head_dim or 0)) * tokens
    else:
        elements = np.ceil(attention.kv_heads / tensor_parallel) * (attention.head_dim + attention.value_head_dim) * tokens
    if attention.index_head_dim:
        elements = elements + attention.index_head_dim * np.asarray(context, dtype=np.float64)
    return elements


def _decode_flops(attention: Attention, tensor_parallel: FloatArray, context: FloatArray) -> FloatArray:
    """FLOP of one new token against its context; MLA multiplies every head with the latent (the absorbed form)."""
    tokens = attended_tokens(attention, context)
    if attention.kind is AttentionKind.MLA:
        latent = attention.kv_lora_rank or 0
        width = 2 * latent + (attention.rope_head_dim or 0)
    else:
        width = attention.head_dim + attention.value_head_dim
    flops = 2.0 * attention.heads * width * tokens / tensor_parallel
    if attention.index_heads and attention.index_head_dim:
        flops = flops + 2.0 * attention.index_heads * attention.index_head_dim * np.asarray(context, dtype=np.float64)
    return flops


def _state_elements(state: RecurrentState, tensor_parallel: FloatArray) -> FloatArray:
    elements: FloatArray = (state.state_elements + state.conv_elements) / tensor_parallel
    return elements


def _pairs_seen(attention: Attention, tokens: FloatArray) -> FloatArray:
    """Pairs of a token and an earlier one it sees, over the first `tokens` tokens of a sequence."""
    if attention.kind is AttentionKind.CROSS:
        return tokens * float(attention.cross_tokens)
    window = attention.index_topk if attention.index_topk is not None else attention.window
    if window is None or (attention.kind is AttentionKind.FULL and attention.index_topk is None):
        return 0.5 * tokens**2
    if attention.kind is AttentionKind.CHUNKED:
        chunks = np.floor(tokens / window)
        return np.asarray(chunks * window**2 / 2.0 + (tokens - chunks * window) ** 2 / 2.0, dtype=np.float64)
    return np.asarray(np.where(tokens <= window, tokens**2 / 2.0, window**2 / 2.0 + (tokens - window) * window), dtype=np.float64)

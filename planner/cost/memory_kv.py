"""Bytes of context a sequence holds: KV cache by kind of attention, and constant states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.catalog.architecture import Attention, AttentionKind, LayerKind, ModelArchitecture
from planner.catalog.dtypes import bytes_per_element
from planner.catalog.engines import Engine
from planner.cost.memory_compressed import compressed_sequence_bytes
from planner.cost.setting import Precision

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def token_bytes(attention: Attention, precision: Precision, tensor_parallel: IntArray) -> FloatArray:
    """Bytes one token takes in one layer on the fullest rank [B], shape [n].

    GQA, MHA and MQA: ceil(K / t) (h_k + h_v) b_kv. MLA: (kv_lora_rank + rope_head_dim) b_kv, not divided by t. A sparse indexer adds
    index_head_dim elements, not divided either.
    """
    t = np.asarray(tensor_parallel, dtype=np.float64)
    size = bytes_per_element(precision.kv_cache)
    if attention.kind is AttentionKind.MLA:
        held = np.full_like(t, ((attention.kv_lora_rank or 0) + (attention.rope_head_dim or 0)) * size)
    else:
        held = np.ceil(attention.kv_heads / t) * (attention.head_dim + attention.value_head_dim) * size
    if attention.index_head_dim:
        held = held + attention.index_head_dim * size
    return held


def tokens_held(attention: Attention, engine: Engine, context: float, mixed: bool, chunk: float = 0.0) -> float:
    """Tokens one sequence of `context` tokens keeps in one layer, rounded to the engine's blocks.

    Full attention and MLA: context. Cross-attention: the tokens of the images, whatever the context. Sliding and chunked: min(context, window + chunk) and one block more, since the window's edge lies within
    a block; `chunk` is what a prefill step may add before the edge moves on. An engine without a hybrid allocator keeps the whole context in
    models that `mixed` both kinds.
    """
    block = engine.block_size
    if attention.kind is AttentionKind.CROSS:
        return float(np.ceil(attention.cross_tokens / block) * block)
    whole = float(np.ceil(context / block) * block)
    if attention.window is None or attention.kind not in (AttentionKind.SLIDING, AttentionKind.CHUNKED):
        return whole
    if mixed and engine.sliding_window == "full":
        return whole
    window = float(np.ceil((attention.window - 1 + max(chunk, 1.0)) / block) * block) + (block if block > 1 else 0)
    return min(whole, window)


def is_mixed(architecture: ModelArchitecture) -> bool:
    """Tell whether windowed layers stand beside layers that keep their whole context."""
    kinds = {kind.attention.kind for kind, _ in architecture.kind_counts() if kind.attention is not None}
    return len(kinds) > 1


def state_bytes(kind: LayerKind, architecture: ModelArchitecture, tensor_parallel: IntArray) -> FloatArray:
    """Bytes of a layer's constant state per sequence [B]: (state + convolution) x model dtype / t, at most divided by its heads.

    Engines keep states in the model's dtype unless told otherwise: 614 slots of a 27B hybrid on one H100 (kaito-project/kaito issue 2319) leave no
    room for 32-bit ones.
    """
    t = np.asarray(tensor_parallel, dtype=np.float64)
    state = kind.recurrent
    if state is None:
        return np.zeros_like(t)
    whole = (state.state_elements + state.conv_elements) * bytes_per_element(architecture.dtype)
    return whole / np.minimum(t, state.heads)


def kind_sequence_bytes(
    architecture: ModelArchitecture,
    precision: Precision,
    engine: Engine,
    tensor_parallel: IntArray,
    context: float,
    chunk: float = 0.0,
) -> FloatArray:
    """Bytes one sequence of `context` tokens keeps in one layer of each kind on the fullest rank [B], shape [n, kinds]."""
    mixed = is_mixed(architecture)
    columns = []
    for kind in architecture.layer_kinds:
        held = state_bytes(kind, architecture, tensor_parallel)
        if kind.attention is not None and kind.attention.kind is AttentionKind.COMPRESSED:
            held = held + compressed_sequence_bytes(kind.attention, precision.kv_cache, context, chunk)
        elif kind.attention is not None:
            tokens = tokens_held(kind.attention, engine, context, mixed, chunk)
            held = held + tokens * token_bytes(kind.attention, precision, tensor_parallel)
        columns.append(held)
    return np.stack(columns, axis=-1)


def kv_bytes_per_sequence(
    architecture: ModelArchitecture,
    precision: Precision,
    engine: Engine,
    tensor_parallel: IntArray,
    context: float,
    chunk: float = 0.0,
) -> FloatArray:
    """Bytes one sequence keeps in all layers together on one rank, as if one stage held them all [B], shape [n].

    Divided by `context` and with `chunk` = the tokens of a prefill step it is the figure per token that vLLM's start-up log implies: sliding
    layers are charged window - 1 + chunk tokens a sequence.
    """
    held = kind_sequence_bytes(architecture, precision, engine, tensor_parallel, context, chunk)
    counts = np.zeros(len(architecture.layer_kinds))
    np.add.at(counts, np.array(architecture.layer_sequence), 1.0)
    return np.asarray(held @ counts, dtype=np.float64)

"""What a deployment serves beside its model: room for adapters in every layer, and a draft model with its own weights and cache.

An adapter of rank r on a matrix of m outputs and n inputs is r (m + n) elements in 16 bits. Column-parallel matrices cut the side of the outputs over t, row-parallel ones
the side of the inputs; the other side is whole on every rank. An engine allocates every slot when it starts. Routed experts, routers and norms take none.

A draft stands on the last pipeline stage, where tokens are sampled.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.catalog.architecture import Adapters, Draft, LayerKind
from planner.catalog.engines import Engine
from planner.cost.memory_kv import kv_bytes_per_sequence
from planner.cost.setting import FloatArray, IntArray, Precision
from planner.cost.tensor import Split
from planner.cost.tensors import layer_tensors

ADAPTER_BYTES: Final = 2.0
ADAPTED: Final = frozenset({"attention", "mlp", "shared_expert", "recurrent"})
OUTPUTS_CUT: Final = frozenset({Split.ROWS, Split.KV_ROWS})


def adapter_bytes(kind: LayerKind, hidden: int, adapters: Adapters | None, tensor_parallel: IntArray) -> FloatArray:
    """Bytes of all adapter slots of one layer on one rank [B], shape [n]."""
    t = np.asarray(tensor_parallel, dtype=np.float64)
    elements = np.zeros_like(t)
    if adapters is None:
        return elements
    for tensor in layer_tensors(kind, hidden):
        if tensor.family not in ADAPTED or tensor.columns == 1:
            continue
        outputs, inputs = np.full_like(t, tensor.rows), np.full_like(t, tensor.columns)
        if tensor.split in OUTPUTS_CUT:
            outputs = np.maximum(outputs / t, tensor.rows / tensor.units if tensor.split is Split.KV_ROWS else 0.0)
        elif tensor.split is Split.COLUMNS:
            inputs = inputs / t
        elements = elements + tensor.count * (outputs + inputs)
    return ADAPTER_BYTES * adapters.slots * adapters.rank * elements


def draft_precision(draft: Draft, precision: Precision) -> Precision:
    """Number formats of a draft: its own checkpoint's weights, the cache of the model it serves."""
    scheme = draft.architecture.quantization
    weights = scheme.weights if scheme is not None else draft.architecture.dtype
    return Precision(weights, precision.kv_cache, precision.activations, scheme)


def draft_ranks(draft: Draft, tensor_parallel: IntArray) -> IntArray:
    """Ranks that share a draft, per shape [n]."""
    return np.ones_like(tensor_parallel) if draft.alone else tensor_parallel


def draft_sequence_bytes(
    draft: Draft | None, precision: Precision, engine: Engine, tensor_parallel: IntArray, context: float
) -> FloatArray:
    """Bytes one sequence keeps in the cache of the draft on one rank of the last stage [B], shape [n]."""
    if draft is None:
        return np.zeros(np.shape(tensor_parallel))
    ranks = draft_ranks(draft, tensor_parallel)
    return kv_bytes_per_sequence(draft.architecture, draft_precision(draft, precision), engine, ranks, context + draft.tokens)

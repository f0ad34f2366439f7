"""Bytes of weights: what a tensor takes in a precision, and what the fullest rank of a stage holds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.catalog.architecture import LayerKind, ModelArchitecture
from planner.catalog.dtypes import bytes_per_element
from planner.cost.setting import Precision
from planner.cost.tensors import Tensor, embedding_tensors, head_tensors, layer_tensors, rank_share

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def element_bytes(tensor: Tensor, precision: Precision, model_dtype: str) -> float:
    """Bytes of one element of `tensor`, its share of the scales included [B].

    A family (or a single tensor's name) in `kept_high` stays at the model's dtype. Scales add scale_bytes / (block rows x block columns)
    or scale_bytes / group; per-channel scales add scale_bytes / columns.
    """
    scheme = precision.quantization
    if scheme is None:
        return bytes_per_element(precision.weights)
    if tensor.family == "norm" or tensor.family in scheme.kept_high or tensor.name in scheme.kept_high:
        return bytes_per_element(model_dtype)
    size = bytes_per_element(precision.weights)
    if scheme.block is not None:
        block_rows, block_columns = scheme.block
        return size + scheme.scale_bytes / (block_rows * block_columns)
    if scheme.group is not None:
        return size + scheme.scale_bytes / scheme.group
    return size + scheme.scale_bytes / tensor.columns


@lru_cache(maxsize=4096)
def tensor_bytes(tensor: Tensor, precision: Precision, model_dtype: str) -> float:
    """Bytes of all `count` matrices of a tensor, scales included [B]."""
    return tensor.parameters * element_bytes(tensor, precision, model_dtype)


def layer_bytes(kind: LayerKind, architecture: ModelArchitecture, precision: Precision) -> float:
    """Bytes of one whole layer, not divided over ranks [B]."""
    tensors = layer_tensors(kind, architecture.hidden_size)
    return sum(tensor_bytes(tensor, precision, architecture.dtype) for tensor in tensors)


def model_bytes(architecture: ModelArchitecture, precision: Precision) -> float:
    """Bytes of the whole language model on one rank, a tied head counted once [B]."""
    layers = sum(count * layer_bytes(kind, architecture, precision) for kind, count in architecture.kind_counts())
    ends = embedding_tensors(architecture) + tuple(
        tensor for tensor in head_tensors(architecture) if not (architecture.tied_embeddings and tensor.family == "head")
    )
    return layers + sum(tensor_bytes(tensor, precision, architecture.dtype) for tensor in ends)


def bytes_per_rank(
    tensors: Iterable[Tensor],
    architecture: ModelArchitecture,
    precision: Precision,
    tensor_parallel: IntArray,
    expert_parallel: IntArray,
    data_parallel: IntArray,
) -> FloatArray:
    """Bytes of `tensors` on the fullest rank of their stage, per shape [B], shape [n]."""
    total = np.zeros(np.shape(tensor_parallel), dtype=np.float64)
    for tensor in tensors:
        share = rank_share(tensor, tensor_parallel, expert_parallel, data_parallel)
        total = total + tensor_bytes(tensor, precision, architecture.dtype) * share
    return total

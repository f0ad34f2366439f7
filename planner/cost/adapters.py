"""Low-rank adapters in a step: their two small products beside every matrix that takes one.

Every request uses one adapter of rank r, and the slots are asked for evenly. Of a matrix of m outputs and n inputs a pass reads r (m + n) elements in 16 bits for each adapter that
its requests use, 1 - (1 - 1/slots)^B of the slots, and every token multiplies with them. More than either costs starting the two kernels, whatever the size: Punica (Chen et al.,
"Multi-Tenant LoRA Serving", arXiv 2310.18547) states 2 ms a token for Llama-2-7B, 32 layers of seven matrices. Later kernels and engines differ: assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.catalog.architecture import Adapters, LayerKind
from planner.catalog.step_times import StepConstants, of_dtype, read_share
from planner.cost.compute import distinct_share, peak_flops
from planner.cost.memory_companions import ADAPTED, ADAPTER_BYTES, adapter_bytes
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays
from planner.cost.tensors import layer_tensors

KERNELS: Final = 2e-3 / (32 * 7)  # [s] a matrix and pass, see above


@dataclass(frozen=True)
class AdapterTerms:
    """Adapters of one layer on a rank: reading one of them [s], multiplying one token with one [s], starting the kernels of the layer [s]; `slots` of them are held."""

    read: FloatArray
    multiply: FloatArray
    kernels: float
    slots: int

    def at(self, rows: IntArray) -> AdapterTerms:
        """The same for some of the shapes, in any order and number."""
        return replace(self, read=self.read[rows], multiply=self.multiply[rows])

    def compute(self, sequences: FloatArray, tokens: FloatArray) -> FloatArray:
        """Reading and multiplying in a pass of `tokens` tokens of `sequences` requests [s], shape [n]."""
        return np.maximum(used(self.slots, sequences) * self.read, tokens * self.multiply)


def used(slots: int, sequences: FloatArray) -> FloatArray:
    """Adapters that so many requests use, of `slots` asked for evenly."""
    return slots * distinct_share(slots, 1, sequences)


def adapter_terms(kind: LayerKind, setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> AdapterTerms | None:
    """Terms of one layer of `kind`; None where the deployment has no adapters or the layer takes none."""
    architecture, adapters = setting.architecture, setting.architecture.adapters
    if adapters is None:
        return None
    matrices = adapted_matrices(kind, architecture.hidden_size)
    if not matrices:
        return None
    size = adapter_bytes(kind, architecture.hidden_size, Adapters(1, adapters.rank), shapes.tensor_parallel)
    memory = setting.gpu.memory_bandwidth.value
    reached = read_share(constants, of_dtype(constants.weight_read, "bf16"), memory)
    rate = peak_flops(setting.gpu, architecture.dtype) * of_dtype(constants.multiply, "bf16")
    return AdapterTerms(size / (memory * reached), 2.0 * size / ADAPTER_BYTES / rate, matrices * KERNELS, adapters.slots)


def adapted_matrices(kind: LayerKind, hidden: int) -> int:
    """Matrices of a layer that take adapters."""
    return sum(tensor.count for tensor in layer_tensors(kind, hidden) if tensor.family in ADAPTED and tensor.columns > 1)

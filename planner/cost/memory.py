"""Does it fit, and for how many sequences: memory of the fullest rank over all stages, for many shapes at once.

    budget = gpu_memory_utilization x memory the driver reports
    room(s) = budget - weights(s) - other(s)                       for every pipeline stage s
    sequences = dp x min over s of floor(room(s) / kv(s))           kv(s) = bytes one sequence of prompt + output tokens keeps in stage s

Every stage is counted by itself: its own layers, the embedding on the first, head and sampler on the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from planner.catalog.engines import Engine
from planner.cost.memory_companions import draft_sequence_bytes
from planner.cost.memory_kv import kind_sequence_bytes
from planner.cost.memory_other import OtherTerms, counted, other_terms
from planner.cost.memory_weights import RankWeights
from planner.cost.pipeline_split import pipeline_splits, rank_weights_of
from planner.cost.setting import Setting, ShapeArrays

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Partitions = Sequence[tuple[int, ...]] | Mapping[int, tuple[int, ...]]


@dataclass(frozen=True)
class MemoryTable:
    """Memory of n shapes [B]; columns of one value a shape, for the stage that is fullest at the shape's batch.

    `weights`, `kv_per_sequence`, `other`, `other_low`, `other_high` are those of stage `stage`; `kv` is what the sequences of one dp rank keep
    there at the shape's batch, `free` = budget - weights - kv - other (negative: does not fit). `max_sequences` (with `_low` and `_high`, under the high and
    low bounds of the other terms) counts over all dp ranks and is the smallest over the stages. `partitions` holds the layers per stage of every shape.
    """

    budget: FloatArray
    weights: FloatArray
    kv_per_sequence: FloatArray
    kv: FloatArray
    other: FloatArray
    other_low: FloatArray
    other_high: FloatArray
    free: FloatArray
    max_sequences: IntArray
    max_sequences_low: IntArray
    max_sequences_high: IntArray
    stage: IntArray
    partitions: tuple[tuple[int, ...], ...]

    def at(self, rows: IntArray) -> MemoryTable:
        """Memory of some shapes, in any order and number."""
        columns = {name: getattr(self, name)[rows] for name in MemoryTable.__dataclass_fields__ if name != "partitions"}
        return MemoryTable(**columns, partitions=tuple(map(self.partitions.__getitem__, rows.tolist())))

    @property
    def fits(self) -> BoolArray:
        """Shapes that hold their batch with the expected other terms."""
        return np.asarray(self.free >= 0.0)

    @property
    def borderline(self) -> BoolArray:
        """Shapes whose fit depends on where in their band the other terms lie."""
        low, high = self.free + self.other - self.other_low, self.free + self.other - self.other_high
        return np.asarray((low >= 0.0) & (high < 0.0))


@dataclass(frozen=True)
class _Stages:
    """Everything per shape and stage [n, stages]; stages a shape does not have are masked."""

    present: BoolArray
    weights: FloatArray
    kv: FloatArray
    other: tuple[FloatArray, FloatArray, FloatArray]


def memory(setting: Setting, shapes: ShapeArrays, partitions: Partitions | None = None) -> MemoryTable:
    """Compute the memory of every shape.

    Parameters
    ----------
    setting
        Model, precision, engine ("vllm", or with its version "vllm 0.7.2"), GPU and workload.
    shapes
        n shapes. Levels are not used.
    partitions
        Layers per stage of each shape, or of each pipeline degree; None balances bytes for every shape by itself.
    """
    facts = setting.engine_facts
    context = setting.prompt_tokens + setting.output_tokens
    weights = rank_weights_of(setting, shapes)
    kv = kind_sequence_bytes(setting.architecture, setting.precision, facts, shapes.tensor_parallel, context)
    terms = other_terms(setting, facts, shapes)
    capacity = setting.gpu.memory.value
    budget = setting.gpu_memory_utilization * capacity
    chosen = pipeline_splits(setting, shapes) if partitions is None else _per_shape(partitions, shapes)
    stages = _by_stage(setting, facts, shapes, chosen, weights, kv, terms, capacity - budget)
    ranks = shapes.data_parallel
    sequences = -(-shapes.batch // ranks)
    counts = [_sequences(budget - stages.weights - other, stages, ranks) for other in stages.other]
    free = budget - stages.weights - stages.other[1] - sequences[:, None] * stages.kv
    stage = np.argmin(np.where(stages.present, free, np.inf), axis=1)
    rows = np.arange(len(stage))
    return MemoryTable(
        budget=np.full(len(stage), budget),
        weights=stages.weights[rows, stage],
        kv_per_sequence=stages.kv[rows, stage],
        kv=sequences * stages.kv[rows, stage],
        other=stages.other[1][rows, stage],
        other_low=stages.other[0][rows, stage],
        other_high=stages.other[2][rows, stage],
        free=free[rows, stage],
        max_sequences=counts[1],
        max_sequences_low=counts[2],
        max_sequences_high=counts[0],
        stage=stage.astype(np.int64),
        partitions=chosen,
    )


def weights_per_rank(setting: Setting, shapes: ShapeArrays, partitions: Partitions | None = None) -> FloatArray:
    """Bytes of weights on the rank that holds most of them, over all stages [B], shape [n]."""
    chosen = pipeline_splits(setting, shapes) if partitions is None else _per_shape(partitions, shapes)
    held = _stage_weights(setting, _ends(setting, shapes, chosen), rank_weights_of(setting, shapes))
    return np.asarray(held.max(axis=1), dtype=np.float64)


def _per_shape(partitions: Partitions, shapes: ShapeArrays) -> tuple[tuple[int, ...], ...]:
    """One partition for every shape, from a list of them or a table by pipeline degree."""
    if isinstance(partitions, Mapping):
        return tuple(partitions[int(stages)] for stages in shapes.pipeline_parallel)
    return tuple(partitions)


def _ends(setting: Setting, shapes: ShapeArrays, partitions: tuple[tuple[int, ...], ...]) -> IntArray:
    """Boundaries of the stages [n, most stages + 1]; stages a shape does not have are empty."""
    most = int(shapes.pipeline_parallel.max(initial=1))
    layers = setting.architecture.layers
    numbers: dict[tuple[int, ...], int] = {}
    where = [numbers.setdefault(partition, len(numbers)) for partition in partitions]
    ends = [[0, *accumulate(partition), *[layers] * (most - len(partition))] for partition in numbers]
    return np.array(ends, dtype=np.int64).reshape(len(ends), most + 1)[where]


def _kind_counts(setting: Setting, ends: IntArray) -> IntArray:
    """Layers of each kind in each stage [n, stages, kinds]."""
    kinds = len(setting.architecture.layer_kinds)
    is_kind = np.array(setting.architecture.layer_sequence)[:, None] == np.arange(kinds)
    before = np.concatenate((np.zeros((1, kinds), dtype=np.int64), np.cumsum(is_kind, axis=0)))
    return np.asarray(before[ends[:, 1:]] - before[ends[:, :-1]], dtype=np.int64)


def _stage_weights(setting: Setting, ends: IntArray, weights: RankWeights) -> FloatArray:
    held = np.einsum("nsk,nk->ns", _kind_counts(setting, ends), weights.layers)
    held[:, 0] += weights.embedding
    last = np.argmax(ends[:, 1:] == setting.architecture.layers, axis=1)
    held[np.arange(len(last)), last] += weights.end
    return np.asarray(held + weights.everywhere[:, None], dtype=np.float64)


def _by_stage(
    setting: Setting,
    facts: Engine,
    shapes: ShapeArrays,
    partitions: tuple[tuple[int, ...], ...],
    weights: RankWeights,
    kv: FloatArray,
    terms: tuple[OtherTerms, OtherTerms, OtherTerms],
    margin: float,
) -> _Stages:
    ends = _ends(setting, shapes, partitions)
    index = np.arange(ends.shape[1] - 1)
    present = index < shapes.pipeline_parallel[:, None]
    is_last = index == shapes.pipeline_parallel[:, None] - 1
    low, expected, high = (
        np.where(is_last, counted(facts, bound, margin, last=True)[:, None], counted(facts, bound, margin, last=False)[:, None])
        for bound in terms
    )
    kept = np.einsum("nsk,nk->ns", _kind_counts(setting, ends), kv)
    context = setting.prompt_tokens + setting.output_tokens
    kept = (
        kept
        + is_last * draft_sequence_bytes(setting.architecture.draft, setting.precision, facts, shapes.tensor_parallel, context)[:, None]
    )
    return _Stages(present, _stage_weights(setting, ends, weights), np.asarray(kept, dtype=np.float64), (low, expected, high))


def _sequences(room: FloatArray, stages: _Stages, ranks: IntArray) -> IntArray:
    """Sequences that the tightest stage holds, all dp ranks together; 0 where the weights alone do not fit."""
    held = np.floor(np.maximum(room, 0.0) / np.maximum(stages.kv, 1.0) * (1.0 + 1e-12))
    tightest = np.min(np.where(stages.present, held, np.inf), axis=1)
    return np.asarray(tightest * ranks, dtype=np.int64)

"""What the physics is asked: one model in one precision on one kind of GPU, and many shapes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engines import Engine, engine
from planner.catalog.gpus import Gpu
from planner.problem.precision import Precision
from planner.topology.paths import LinkPath

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

__all__ = ["FloatArray", "IntArray", "Precision", "Setting", "ShapeArrays", "TimesTable", "joined_shapes", "per_row"]


@dataclass(frozen=True)
class Setting:
    """Everything the times and the memory depend on besides the shape.

    `prompt_tokens` S, `output_tokens` out: lengths of a request [tokens]. `max_batched_tokens` bounds one prefill chunk,
    `max_model_len` the context an engine reserves for; both resolved (never None here). `prefix_cache_hit_rate` is the share of prompt tokens not
    prefilled. `gpu_memory_utilization` x driver memory is the budget. `request_rate` [1/s] is offered to one replica, 0 for a closed loop.
    `max_num_seqs` is the most sequences the engine is started for on one data-parallel rank, 0 = its default.
    """

    architecture: ModelArchitecture
    precision: Precision
    engine: str
    gpu: Gpu
    paths: tuple[LinkPath, ...]  # by level, smallest level first; ShapeArrays index into it
    prompt_tokens: float
    output_tokens: float
    max_batched_tokens: int
    max_model_len: int
    gpu_memory_utilization: float
    prefix_cache_hit_rate: float = 0.0
    profile: str = "calibrated"
    request_rate: float = 0.0
    max_num_seqs: int = 0

    @cached_property
    def engine_facts(self) -> Engine:
        """Facts of the engine's version, with the kernels it picks on this GPU."""
        return engine(self.engine).on(self.gpu)


@dataclass(frozen=True)
class ShapeArrays:
    """Shapes as columns of equal length n.

    `tp_level`, `stage_level`, `replica_level` index `Setting.paths`: the level that joins one TP group, one pipeline stage (the EP / DP group), and the
    whole replica. `stage_scopes` counts the scale-up scopes a stage spans (1 = inside one). `batch` is sequences per replica, all dp ranks together.
    """

    tensor_parallel: IntArray
    pipeline_parallel: IntArray
    expert_parallel: IntArray
    data_parallel: IntArray
    batch: IntArray
    tp_level: IntArray
    stage_level: IntArray
    stage_scopes: IntArray
    replica_level: IntArray

    def at(self, rows: IntArray | NDArray[np.bool_] | slice) -> ShapeArrays:
        """Some of the shapes, in any order and number."""
        return ShapeArrays(**{name: getattr(self, name)[rows] for name in ShapeArrays.__dataclass_fields__})

    @cached_property
    def key(self) -> bytes:
        """All numbers, the same for equal shapes in the same order."""
        return np.stack([getattr(self, name) for name in ShapeArrays.__dataclass_fields__]).tobytes()


@dataclass(frozen=True)
class TimesTable:
    """Times of n shapes as float columns [s]; `overhead`, `efficiency`, `latency_efficiency`, `bubble` are shares of 1.

    `compute`, `tp_comm`, `pp_comm`, `ep_comm`, `fixed` are the parts of `tpot` (the step as one sequence sees it); `ttft` = queueing + prefill_compute +
    prefill_comm (+ fixed prefill costs, counted in prefill_compute). `throughput` is output tokens/s of the replica at its batch. `algorithm` names the all-reduce chosen per shape.
    """

    tpot: FloatArray
    ttft: FloatArray
    compute: FloatArray
    tp_comm: FloatArray
    pp_comm: FloatArray
    ep_comm: FloatArray
    fixed: FloatArray
    prefill_compute: FloatArray
    prefill_comm: FloatArray
    queueing: FloatArray
    overhead: FloatArray
    efficiency: FloatArray
    latency_efficiency: FloatArray
    bubble: FloatArray
    throughput: FloatArray
    algorithm: NDArray[np.str_]

    def at(self, rows: slice) -> TimesTable:
        """Times of some of the shapes."""
        return TimesTable(**{name: getattr(self, name)[rows] for name in TimesTable.__dataclass_fields__})


def joined_shapes(parts: Sequence[ShapeArrays]) -> ShapeArrays:
    """Shapes of several tables, one after the other."""
    return ShapeArrays(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in ShapeArrays.__dataclass_fields__})


def per_row(values: FloatArray | float, rows: IntArray) -> FloatArray | float:
    """Values of some shapes, in any order and number; one that is the same for all shapes stays one."""
    return values[rows] if isinstance(values, np.ndarray) and values.ndim else values

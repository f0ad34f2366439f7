"""How far the ranks of a replica are apart on the fabric's graph, as the cost model takes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.degrees import layouts, pool_room
from planner.cost.setting import IntArray, ShapeArrays
from planner.diagnostics import PlannerError
from planner.placement.gpu_words import gpus_of_node
from planner.placement.proposal import ProposedGpu
from planner.plan.shape import Degrees
from planner.topology.fabric import Fabric, GpuId
from planner.topology.pools import Pool


@dataclass(frozen=True, slots=True)
class Distances:
    """Levels that join one TP group, one stage and the whole replica (indices into the pool's levels), the widest of each.

    `tensor_scopes` and `stage_scopes` are the most scale-up scopes that a TP group and a stage touch. `apart` tells that no network joins the replica.
    """

    tensor: int
    stage: int
    replica: int
    tensor_scopes: int
    stage_scopes: int
    apart: bool = False

    def shapes(self, degrees: Degrees, batches: IntArray) -> ShapeArrays:
        """Columns of one shape at these distances, one row a batch [n]."""

        def same(value: int) -> IntArray:
            return np.full(len(batches), value, dtype=np.int64)

        return ShapeArrays(
            tensor_parallel=same(degrees.tensor_parallel),
            pipeline_parallel=same(degrees.pipeline_parallel),
            expert_parallel=same(degrees.expert_parallel),
            data_parallel=same(degrees.data_parallel),
            batch=np.asarray(batches, dtype=np.int64),
            tp_level=same(self.tensor),
            stage_level=same(self.stage),
            stage_scopes=same(self.stage_scopes),
            replica_level=same(self.replica),
        )

    def nearer(
        self, tensor: int | None = None, stage: int | None = None, replica: int | None = None, scopes: int | None = None
    ) -> Distances:
        """The same degrees placed closer; what is not named stays."""
        return replace(
            self,
            tensor=self.tensor if tensor is None else min(tensor, self.tensor),
            stage=self.stage if stage is None else min(stage, self.stage),
            replica=self.replica if replica is None else min(replica, self.replica),
            stage_scopes=self.stage_scopes if scopes is None else scopes,
        )


def parts(gpus: Sequence[ProposedGpu], size: int) -> Iterator[Sequence[ProposedGpu]]:
    """Consecutive groups of `size` ranks."""
    for first in range(0, len(gpus), size):
        yield gpus[first : first + size]


def known(fabric: Fabric, gpus: Iterable[ProposedGpu]) -> list[GpuId]:
    """Those GPUs that the fabric has."""
    return [GpuId(gpu.node, gpu.gpu) for gpu in gpus if 0 <= gpu.gpu < gpus_of_node(fabric, gpu.node)]


def distances(fabric: Fabric, pool: Pool, degrees: Degrees, gpus: Sequence[ProposedGpu]) -> Distances:
    """Distances of a replica; those of the best layout on the pool where it is on no GPU that the fabric has."""
    here = known(fabric, gpus)
    if not here:
        return _unplaced(fabric, pool, degrees)
    tensor, tensor_scopes, _ = _widest(fabric, pool, parts(gpus, degrees.tensor_parallel))
    stage, stage_scopes, _ = _widest(fabric, pool, parts(gpus, degrees.stage_gpus))
    replica, _, apart = _widest(fabric, pool, [gpus])
    return Distances(tensor, stage, max(replica, stage), tensor_scopes, stage_scopes, apart)


def _widest(fabric: Fabric, pool: Pool, groups: Iterable[Sequence[ProposedGpu]]) -> tuple[int, int, bool]:
    level, scopes, apart = 0, 1, False
    for group in groups:
        here = known(fabric, group)
        if not here:
            continue
        scopes = max(scopes, len({fabric.scope_of(gpu.node) for gpu in here}))
        try:
            found = fabric.level(here)
        except PlannerError:
            level, apart = len(pool.levels) - 1, True
            continue
        level = max(level, pool.levels.index(found) if found in pool.levels else len(pool.levels) - 1)
    return level, scopes, apart


def _unplaced(fabric: Fabric, pool: Pool, degrees: Degrees) -> Distances:
    layout = next(layouts(pool_room(fabric, pool), degrees), None)
    if layout is not None:
        return Distances(layout.tp_level, layout.stage_level, layout.replica_level, 1, layout.stage_scopes)
    last = len(pool.levels) - 1
    scopes = max(-(-degrees.tensor_parallel // pool.scope_size), 1)
    return Distances(last if degrees.tensor_parallel > 1 else 0, last, last, scopes, max(-(-degrees.stage_gpus // pool.scope_size), 1))

"""What every check looks at: the question, the fabric, and the plan turned into columns once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from planner.audit.columns import IntArray, RankColumns, ReplicaRow, rank_columns, replica_rows
from planner.audit.findings import deployment_place
from planner.audit.sites import Sites
from planner.catalog.architecture import ModelArchitecture
from planner.diagnostics import Place
from planner.plan.document import PlanDocument, RankDocument, ShapeDocument
from planner.plan.shape import Degrees
from planner.problem.documents import Deployment, Problem
from planner.topology.fabric import Fabric
from planner.topology.pools import Pool

UNKNOWN = -1
# No replica has more ranks, and none holds more sequences; larger figures are reported instead of computed with.
LARGEST_DEGREE = 2**16
LARGEST_BATCH = 2**40


@dataclass(frozen=True)
class Family:
    """Replicas alike in deployment, pool and shape: what is true of one figure is true of all, so it is computed once.

    `question` and `architecture` are the deployment asked for and its model; `rows` are the replica rows of this shape.
    """

    name: str
    question: Deployment
    architecture: ModelArchitecture
    pool: Pool
    shape: ShapeDocument
    degrees: Degrees
    rows: IntArray
    first: ReplicaRow

    @property
    def place(self) -> Place:
        """Place of the first replica of this shape."""
        return deployment_place(self.name, self.first.number)

    @property
    def title(self) -> str:
        """Shape in words, with how many replicas share it."""
        count = len(self.rows)
        shared = f", {count} replicas" if count > 1 else ""
        return f"{self.name}: {self.degrees} on {self.shape.gpu}, batch {self.shape.batch}{shared}"


class Case:
    """One plan under audit, with the columns all checks share; built once, read only."""

    def __init__(self, problem: Problem, fabric: Fabric, architectures: tuple[ModelArchitecture, ...], plan: PlanDocument) -> None:
        self.problem = problem
        self.fabric = fabric
        self.architectures = architectures
        self.plan = plan
        self.sites = Sites.of(fabric)
        self.rows: tuple[ReplicaRow, ...] = replica_rows(plan)
        self.ranks: RankColumns = rank_columns(self.rows, self.sites.node_codes, self.sites.scope_codes)
        self.site: IntArray = self.sites.lookup(self.ranks.node, self.ranks.gpu)
        self.asked: dict[str, int] = {deployment.name: index for index, deployment in enumerate(problem.deployments)}

    def place(self, position: SupportsIndex) -> Place:
        """Place of the rank at `position` of the rank columns."""
        row = self.rows[int(self.ranks.replica[position])]
        return deployment_place(row.name, row.number, int(position) - row.first)

    def rank(self, position: SupportsIndex) -> RankDocument:
        """Rank at `position` of the rank columns as the plan writes it."""
        row = self.rows[int(self.ranks.replica[position])]
        return row.document.ranks[int(position) - row.first]

    def row_place(self, index: SupportsIndex) -> Place:
        """Place of the replica at `index` of the replica rows."""
        return deployment_place(self.rows[index].name, self.rows[index].number)

    def gpu_name(self, position: SupportsIndex) -> str:
        """`node:gpu` as the plan writes it, of the rank at `position`."""
        rank = self.rank(position)
        return f"{rank.node}:{rank.gpu}"

    @cached_property
    def degrees(self) -> IntArray:
        """Claimed tp, pp, ep, dp of every replica, as columns [replicas, 4]; wild ones are cut to what 64 bits multiply."""
        shapes = (row.document.shape for row in self.rows)
        claimed = [[max(-1, min(LARGEST_DEGREE + 1, degree)) for degree in (shape.tp, shape.pp, shape.ep, shape.dp)] for shape in shapes]
        return np.array(claimed, dtype=np.int64).reshape(-1, 4)

    @cached_property
    def sane(self) -> NDArray[np.bool_]:
        """Replicas whose degrees are positive and whose rank count is tp x dp x pp, so that their groups can be formed."""
        tensor, pipeline, _, data = self.degrees.T
        sizes = np.array([row.end - row.first for row in self.rows], dtype=np.int64)
        result: NDArray[np.bool_] = (self.degrees.min(axis=1, initial=1) >= 1) & (sizes == tensor * pipeline * data) & (sizes > 0)
        return result

    @cached_property
    def row_pool(self) -> IntArray:
        """Pool of each replica: that of its first rank on a GPU the fabric has, else the first pool of the claimed type, else -1."""
        by_type = {pool.gpu.name: pool.index for pool in reversed(self.fabric.pools)}
        pools = np.array([by_type.get(row.document.shape.gpu, UNKNOWN) for row in self.rows], dtype=np.int64)
        known = np.flatnonzero(self.site >= 0)
        rows, first = np.unique(self.ranks.replica[known], return_index=True)
        pools[rows] = self.sites.pool[self.site[known[first]]]
        return pools

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """Replicas grouped by deployment, pool and shape; those of unknown deployments, pools or unusable degrees are left to other checks."""
        members: dict[tuple[int, int, ShapeDocument], list[int]] = {}
        for index, (row, pool) in enumerate(zip(self.rows, self.row_pool.tolist(), strict=True)):
            asked = self.asked.get(row.name, UNKNOWN)
            if UNKNOWN not in {asked, pool}:
                members.setdefault((asked, pool, row.document.shape), []).append(index)
        return tuple(self._families(members))

    def _families(self, members: dict[tuple[int, int, ShapeDocument], list[int]]) -> Iterator[Family]:
        for (asked, pool, shape), rows in members.items():
            architecture = self.architectures[asked]
            if believable(shape) and well_partitioned(shape, architecture):
                yield Family(
                    name=self.problem.deployments[asked].name,
                    question=self.problem.deployments[asked],
                    architecture=architecture,
                    pool=self.fabric.pools[pool],
                    shape=shape,
                    degrees=Degrees(shape.tp, shape.pp, shape.ep, shape.dp),
                    rows=np.array(rows, dtype=np.int64),
                    first=self.rows[rows[0]],
                )


def believable(shape: ShapeDocument) -> bool:
    """Whether degrees and batch are positive and of a size that machines have."""
    degrees = (shape.tp, shape.pp, shape.ep, shape.dp)
    return min(*degrees, shape.batch) >= 1 and max(degrees) <= LARGEST_DEGREE and shape.batch <= LARGEST_BATCH


def well_partitioned(shape: ShapeDocument, architecture: ModelArchitecture) -> bool:
    """Whether the partition names one stage per pipeline rank, at least one layer each, and all layers of the model."""
    partition = shape.partition
    return len(partition) == shape.pp and min(partition) >= 1 and sum(partition) == architecture.layers

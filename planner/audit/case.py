"""What every check looks at: the question, the fabric, and the plan turned into columns once."""

from __future__ import annotations

from functools import cached_property
from typing import SupportsIndex

import numpy as np

from planner.audit.columns import BoolArray, FloatArray, IntArray, RankColumns, ReplicaColumns, ReplicaRows, rank_columns, replica_columns
from planner.audit.families import LARGEST_DEGREE, Family, believable, well_partitioned
from planner.audit.findings import deployment_place
from planner.audit.levels import PlacedLevels, Placement, placed_levels
from planner.audit.question import engine_of, precision_of
from planner.audit.sites import Sites
from planner.catalog.architecture import ModelArchitecture
from planner.diagnostics import Place
from planner.plan.document import PlanDocument, RankDocument
from planner.problem.current_plan import CurrentPlan
from planner.problem.documents import Problem
from planner.topology.fabric import Fabric

UNKNOWN = -1


class Case:
    """One plan under audit, with the columns all checks share; built once, read only."""

    def __init__(
        self,
        problem: Problem,
        fabric: Fabric,
        architectures: tuple[ModelArchitecture, ...],
        plan: PlanDocument,
        current: CurrentPlan | None = None,
    ) -> None:
        self.problem = problem
        self.fabric = fabric
        self.architectures = architectures
        self.plan = plan
        self.current = current
        self.sites = Sites.of(fabric)
        self.rows = ReplicaRows(plan)
        self.replicas: ReplicaColumns = replica_columns(self.rows)
        self.ranks: RankColumns = rank_columns(self.rows, self.sites.node_codes, self.sites.scope_codes)
        self.site: IntArray = self.sites.lookup(self.ranks.node, self.ranks.gpu)
        self.asked: dict[str, int] = {deployment.name: index for index, deployment in enumerate(problem.deployments)}

    def place(self, position: SupportsIndex) -> Place:
        """Place of the rank at `position` of the rank columns."""
        row = self.rows[int(self.ranks.replica[position])]
        return deployment_place(row.name, row.number, int(position) - row.first)

    def row_place(self, index: SupportsIndex) -> Place:
        """Place of the replica at `index` of the replica rows."""
        row = self.rows[index]
        return deployment_place(row.name, row.number)

    def gpu_name(self, position: SupportsIndex) -> str:
        """`node:gpu` as the plan writes it, of the rank at `position`."""
        rank = self.rank(position)
        return f"{rank.node}:{rank.gpu}"

    def rank(self, position: SupportsIndex) -> RankDocument:
        """Rank at `position` of the rank columns as the plan writes it."""
        row = self.rows[int(self.ranks.replica[position])]
        return row.document.ranks[int(position) - row.first]

    @cached_property
    def degrees(self) -> IntArray:
        """Claimed tp, pp, ep, dp of every replica, as columns [replicas, 4]; wild ones are cut to what 64 bits multiply."""
        shapes = [self.rows[row].document.shape for row in self.replicas.shape_rows.tolist()]
        claimed = [[max(-1, min(LARGEST_DEGREE + 1, degree)) for degree in (shape.tp, shape.pp, shape.ep, shape.dp)] for shape in shapes]
        return np.array(claimed, dtype=np.int64).reshape(-1, 4)[self.replicas.shape]

    @cached_property
    def sane(self) -> BoolArray:
        """Replicas whose degrees are positive and whose rank count is tp x dp x pp, so that their groups can be formed."""
        tensor, pipeline, _, data = self.degrees.T
        sizes = self.replicas.size
        result: BoolArray = (self.degrees.min(axis=1, initial=1) >= 1) & (sizes == tensor * pipeline * data) & (sizes > 0)
        return result

    @cached_property
    def row_asked(self) -> IntArray:
        """Index of the problem's deployment each replica is for; -1 when nobody asked for it."""
        of_deployment = np.array([self.asked.get(answer.name, UNKNOWN) for answer in self.plan.deployments], dtype=np.int64)
        return of_deployment[self.replicas.deployment]

    @cached_property
    def row_pool(self) -> IntArray:
        """Pool of each replica: that of its first rank on a GPU the fabric has, else the first pool of the claimed type, else -1."""
        by_type = {pool.gpu.name: pool.index for pool in reversed(self.fabric.pools)}
        of_shape = [by_type.get(self.rows[row].document.shape.gpu, UNKNOWN) for row in self.replicas.shape_rows.tolist()]
        pools = np.array(of_shape, dtype=np.int64)[self.replicas.shape]
        known = np.flatnonzero(self.site >= 0)
        rows, first = np.unique(self.ranks.replica[known], return_index=True)
        pools[rows] = self.sites.pool[self.site[known[first]]]
        return pools

    @cached_property
    def placed(self) -> PlacedLevels:
        """How far the ranks of each replica are apart."""
        return placed_levels(Placement(self.ranks, self.site, self.sites, self.fabric.pools, self.row_pool))

    def deployment_sums(self, values: FloatArray) -> FloatArray:
        """Sum of a replica column over the replicas of each of the plan's deployments [deployments]."""
        return np.bincount(self.replicas.deployment, weights=values, minlength=len(self.plan.deployments)).astype(np.float64)

    @cached_property
    def groups(self) -> tuple[IntArray, ...]:
        """Rows of the replicas alike in deployment, pool and shape, for all of them, in document order."""
        if not self.rows:
            return ()
        pools = len(self.fabric.pools) + 1
        keys = (self.replicas.deployment * pools + self.row_pool + 1) * len(self.replicas.shape_rows) + self.replicas.shape
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        found = np.split(order, np.cumsum(np.bincount(inverse))[:-1])
        return tuple(found[group] for group in np.argsort(first))

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """Groups that physics can be asked about; those of unknown deployments, pools or unusable degrees are left to other checks."""
        families = []
        for rows in self.groups:
            asked, pool = int(self.row_asked[rows[0]]), int(self.row_pool[rows[0]])
            shape = self.rows[int(rows[0])].document.shape
            if UNKNOWN in {asked, pool} or not believable(shape) or not well_partitioned(shape, self.architectures[asked]):
                continue
            question, architecture, kind = self.problem.deployments[asked], self.architectures[asked], self.fabric.pools[pool]
            precision = precision_of(question, architecture, kind.gpu, shape)
            families.append(Family(question, architecture, engine_of(question), kind, precision, shape, rows))
        return tuple(families)

"""What the formulation answers: status, objective with bound and gap, and replicas on concrete GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from planner.diagnostics import Diagnostic
from planner.plan.shape import Shape


class Status(StrEnum):
    """How far the answer got: proved optimal, a plan without that proof, proved impossible, or nothing known."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Objective:
    """Value and proved bound of the objective asked for, in `unit`; `gap` = |value - bound| / |value|, 0 when both are 0."""

    name: str
    value: float
    bound: float
    gap: float
    unit: str


@dataclass(frozen=True, slots=True)
class RankPlace:
    """One rank of a replica on one concrete GPU. `scope` names the scale-up scope the GPU is in."""

    rank: int
    stage: int
    tp_rank: int
    dp_rank: int
    ep_rank: int
    node: str
    gpu: int
    scope: str


@dataclass(frozen=True, slots=True)
class PlacedReplica:
    """A replica of `shape` with its ranks in rank order (stage, then dp rank, then tp rank).

    `portions` are the shares of the buckets' loads that it serves, one per bucket; empty where the workload has no buckets.
    """

    shape: Shape
    ranks: tuple[RankPlace, ...]
    portions: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class NotKept:
    """One replica of the current plan that cannot stay: its deployment and number there, and what is in the way."""

    deployment: str
    number: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Answer of `solve`: `replicas` is empty when there is no plan, `objective` is then None.

    `interrupted` tells that Ctrl-C came, which leaves a proved plan proved but its ties as they were. `stays` tells of every replica
    whether it runs in the current plan and stays as it is; empty where no plan runs. `spares` are GPUs kept free, each set for a lost replica of its shape.
    """

    status: Status
    objective: Objective | None
    replicas: tuple[PlacedReplica, ...]
    stopped_by: str | None = None
    secondary: tuple[Objective, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    interrupted: bool = False
    stays: tuple[bool, ...] = ()
    spares: tuple[PlacedReplica, ...] = ()

    @property
    def has_plan(self) -> bool:
        """Whether there is a plan, be it one in which nothing runs."""
        return self.status in {Status.OPTIMAL, Status.FEASIBLE}

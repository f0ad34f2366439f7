"""What the stages of one solve decided."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.plan.outcome import Status
from planner.solve.model import Model
from planner.solve.placement import Placed


@dataclass(frozen=True, slots=True)
class Stage:
    """One finished stage in integer units: `name`, value and proved bound."""

    name: str
    value: int
    bound: int | None


@dataclass
class Decision:
    """What the stages found: the model whose variables `values` are, the stages in order, and what stopped an unfinished one.

    `placed` holds the replicas where they were placed together with the choice of counts, else it is None. `interrupted` tells that Ctrl-C came, be it after the objective was proved, while ties were broken.
    """

    status: Status
    model: Model | None = None
    values: tuple[int, ...] = ()
    stages: list[Stage] = field(default_factory=list)
    stopped_by: str | None = None
    interrupted: bool = False
    placed: tuple[Placed, ...] | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        """Replicas of every shape of the instance."""
        return () if self.model is None else tuple(self.values[variable] for variable in self.model.count)

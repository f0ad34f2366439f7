"""Rules about where replicas may stand and what must be left after a failure, as their author writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from planner.problem.fault import Fault
from planner.problem.faults import spread_faults
from planner.problem.parts import Kind, ProblemPart
from planner.quantities import Fraction, Money, Seconds

MOST_REPLICAS = 100_000
MOST_PRIORITY = 1000


class Spread(ProblemPart):
    """How many replicas of a deployment may share a failure domain."""

    over: Kind = Field(description="Kind of failure domain: node, leaf, or a kind that the topology names (rack, zone, ...)")
    most: Annotated[int, Field(strict=True, ge=1, le=MOST_REPLICAS)] = Field(
        default=1, description="At most so many replicas with GPUs in one such domain"
    )

    @classmethod
    def faults(cls, given: Mapping[str, Any]) -> Iterator[Fault]:
        """GPUs are no domain to spread over: replicas never share one."""
        return spread_faults(given)


class Resilience(ProblemPart):
    """What a deployment must still serve after the loss of any one failure domain."""

    lose: Kind = Field(description="What may fail: gpu, node, leaf, or a kind that the topology names (rack, zone, ...)")
    keep: Annotated[Fraction, Field(gt=0)] = Field(
        default=1.0, description="Share of the load that the replicas not touched by the loss still serve"
    )


SECONDS_PER_HOUR = 3600.0
DAY = 24 * SECONDS_PER_HOUR


class Current(ProblemPart):
    """A plan that runs already: its replicas may stay where they are, and every other replica is a move."""

    plan: str = Field(
        min_length=1, max_length=4096, description="Path of the plan that runs, as `planner solve -o` wrote it, relative to this file"
    )
    price_per_move: Money = Field(
        description="What one replica costs that is moved or new, paid once: its loading, its cold cache, the risk; $3 for example"
    )
    over: Annotated[Seconds, Field(ge=60, le=10 * 366 * DAY)] = Field(
        default=DAY, description="How long the new plan is to run, which the price of a move is spread over, 24h for example"
    )

    @property
    def price_per_hour(self) -> float:
        """Price of one move spread over the time the plan is to run [$/h]."""
        return self.price_per_move * SECONDS_PER_HOUR / self.over


def spread_over(value: Any) -> Any:
    """Read `spread: leaf` as at most one replica in every leaf."""
    return {"over": value} if isinstance(value, str) else value


def lose_any(value: Any) -> Any:
    """Read `resilience: node` as keeping the whole load after the loss of any one node."""
    return {"lose": value} if isinstance(value, str) else value


def all_or_nothing(value: Any) -> Any:
    """Read `may_go_unserved: true` as all of the load, `false` as none of it."""
    return float(value) if isinstance(value, bool) else value

"""Lists of choices joined one after another, without a solver: exact where what is left of the gap leaves few combinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.plan.outcome import Status
from planner.solve.decomposition.columns import Bound
from planner.solve.decomposition.combining import Choices
from planner.solve.decomposition.split import Parts
from planner.solve.instance import BoolArray, IntArray
from planner.solve.result import Result

PAIRS = 400_000
"""Most pairs of a combination so far and a choice that all steps together look at."""

# What is computed in doubles may exceed the budget by this share of it, so that nothing is lost to rounding.
ROUNDING = 1e-9


@dataclass
class Combinations:
    """Combinations of one choice each of the deployments joined so far, `order`: excess, cost, use of live rows [k, r], choices taken [k, deployments]."""

    order: list[int]
    excess: IntArray
    cost: IntArray
    use: IntArray
    taken: IntArray

    def of(self, figures: Sequence[IntArray]) -> IntArray:
        """Sum over the deployments of a figure of the choice taken, given by deployment and choice [k]."""
        found = np.zeros(len(self.cost), dtype=np.int64)
        for place, deployment in enumerate(self.order):
            found += figures[deployment][self.taken[:, place]]
        return found

    def counts(self, parts: Parts, listed: Sequence[Choices], number: int) -> IntArray:
        """Counts of all shapes in one combination [n]."""
        found = np.zeros(len(parts.cost), dtype=np.int64)
        for place, deployment in enumerate(self.order):
            found[parts.shapes[deployment]] = listed[deployment].counts[self.taken[number, place]]
        return found

    def take(self, chosen: BoolArray | IntArray) -> Combinations:
        """Only the chosen ones, by index or mask."""
        return Combinations(self.order, self.excess[chosen], self.cost[chosen], self.use[chosen], self.taken[chosen])


def combinations(
    parts: Parts, listed: Sequence[Choices], live: BoolArray, start: Bound, most: int, *, exactly: bool = False
) -> Combinations | None:
    """All combinations of the listed choices that keep the live rows and cost at most `most`, or `exactly` that; None when the steps grow too long.

    In price units, what a plan costs above the bound is made of parts that are not negative::

        scale x cost - bound = sum_m ((c + pi a) n_m - least_m) + pi (room - use)

    so a partial combination ends where the excess of its choices, and the priced room that the deployments left cannot fill, pass what `most` allows. Only
    without variables beside the counts.
    """
    budget = most * start.scale - start.exact
    room, prices = parts.room[live], start.prices[live].astype(np.float64)
    costs = start.costs(parts)
    order = sorted(range(len(listed)), key=lambda deployment: (len(listed[deployment]), deployment))
    fills = [listed[deployment].use[:, live].max(axis=0, initial=0) for deployment in order]
    joined = Combinations(order, *(np.zeros(shape, dtype=np.int64) for shape in (1, 1, (1, len(room)), (1, 0))))
    looked = 0
    for step, deployment in enumerate(order):
        mine = listed[deployment]
        excess = mine.counts @ np.array(costs[deployment], dtype=np.int64) - start.least[deployment]
        if exactly and step == len(order) - 1:
            # The last choice must make up what is left of the cost.
            ranked = np.argsort(mine.cost, kind="stable")
            first, end = (np.searchsorted(mine.cost[ranked], most - joined.cost, side=side) for side in ("left", "right"))
        else:
            ranked = np.argsort(excess, kind="stable")
            end = np.searchsorted(excess[ranked], budget - joined.excess, side="right")
            first = np.zeros_like(end)
        fitting = end - first
        total = int(fitting.sum())
        looked += total
        if looked > PAIRS:
            return None
        parent = np.repeat(np.arange(len(fitting)), fitting)
        choice = ranked[np.arange(total) - np.repeat(np.cumsum(fitting) - fitting, fitting) + first[parent]]
        use = joined.use[parent] + mine.use[choice][:, live]
        above = joined.excess[parent] + excess[choice]
        unfilled = np.maximum(room - use - sum(fills[step + 1 :], np.zeros_like(room)), 0) @ prices
        kept = (use <= room).all(axis=1) & (above + unfilled <= budget * (1 + ROUNDING) + 1)
        parent, choice = parent[kept], choice[kept]
        taken = np.concatenate((joined.taken[parent], choice[:, None]), axis=1)
        joined = Combinations(order, above[kept], joined.cost[parent] + mine.cost[choice], use[kept], taken)
    return joined.take(joined.cost <= most)


def join(parts: Parts, listed: Sequence[Choices], live: BoolArray, start: Bound, upper: int) -> Result | None:
    """Find the cheapest combination of the listed choices below `upper`; None when the steps grow too long."""
    joined = combinations(parts, listed, live, start, upper - 1)
    if joined is None:
        return None
    if not len(joined.cost):
        return Result(Status.INFEASIBLE)
    best = int(np.lexsort((*joined.taken.T[::-1], joined.cost))[0])
    value = int(joined.cost[best])
    return Result(Status.OPTIMAL, tuple(joined.counts(parts, listed, best).tolist()), value, value)

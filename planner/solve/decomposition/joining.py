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
class _Joined:
    """Combinations of one choice each of the deployments joined so far: excess, cost, use of live rows [k, r], choices taken [k, deployments]."""

    excess: IntArray
    cost: IntArray
    use: IntArray
    taken: IntArray


def join(parts: Parts, listed: Sequence[Choices], live: BoolArray, start: Bound, upper: int) -> Result | None:
    """Find the cheapest combination of the listed choices below `upper`; None when the steps grow too long.

    In price units, what a plan costs above the bound is made of parts that are not negative::

        scale x cost - bound = sum_m ((c + pi a) n_m - least_m) + pi (room - use)

    so a partial combination ends where the excess of its choices, and the priced room that the deployments left cannot fill, pass what `upper` allows. Only
    without variables beside the counts.
    """
    budget = (upper - 1) * start.scale - start.exact
    room, prices = parts.room[live], start.prices[live].astype(np.float64)
    costs = start.costs(parts)
    order = sorted(range(len(listed)), key=lambda deployment: (len(listed[deployment]), deployment))
    fills = [listed[deployment].use[:, live].max(axis=0, initial=0) for deployment in order]
    joined = _Joined(*(np.zeros(shape, dtype=np.int64) for shape in (1, 1, (1, len(room)), (1, 0))))
    looked = 0
    for step, deployment in enumerate(order):
        mine = listed[deployment]
        excess = mine.counts @ np.array(costs[deployment], dtype=np.int64) - start.least[deployment]
        ranked = np.argsort(excess, kind="stable")
        fitting = np.searchsorted(excess[ranked], budget - joined.excess, side="right")
        total = int(fitting.sum())
        looked += total
        if looked > PAIRS:
            return None
        parent = np.repeat(np.arange(len(fitting)), fitting)
        choice = ranked[np.arange(total) - np.repeat(np.cumsum(fitting) - fitting, fitting)]
        use = joined.use[parent] + mine.use[choice][:, live]
        above = joined.excess[parent] + excess[choice]
        unfilled = np.maximum(room - use - sum(fills[step + 1 :], np.zeros_like(room)), 0) @ prices
        kept = (use <= room).all(axis=1) & (above + unfilled <= budget * (1 + ROUNDING) + 1)
        parent, choice = parent[kept], choice[kept]
        joined = _Joined(
            above[kept],
            joined.cost[parent] + mine.cost[choice],
            use[kept],
            np.concatenate((joined.taken[parent], choice[:, None]), axis=1),
        )
    below = np.flatnonzero(joined.cost < upper)
    if not len(below):
        return Result(Status.INFEASIBLE)
    best = below[np.lexsort((*joined.taken[below].T[::-1], joined.cost[below]))[0]]
    counts = np.zeros(len(parts.cost), dtype=np.int64)
    for deployment, number in zip(order, joined.taken[best].tolist(), strict=True):
        counts[parts.shapes[deployment]] = listed[deployment].counts[number]
    value = int(joined.cost[best])
    return Result(Status.OPTIMAL, tuple(counts.tolist()), value, value)

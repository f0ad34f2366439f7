"""How many replicas of every shape a plan up to a value may have: the bound by deployments, read backwards.

Let `bound` be a bound at prices pi. In a plan of cost at most `upper` every deployment's choice n has

    (c + pi a) n <= its own least + (upper - bound)

because what all terms of the bound lose together is at most upper - bound. With one count fixed at k the left side is at least that of a fractional
cover of what is left of the load, a convex function of k, so the counts that may be are an interval; most shapes' is 0 to 0.

Source: reduced-cost fixing, Dantzig, Fulkerson and Johnson, "Solution of a large-scale traveling-salesman problem" (1954).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planner.solve.decomposition.columns import Bound
from planner.solve.decomposition.knapsack import Knapsack
from planner.solve.decomposition.listing import ROUNDING, near
from planner.solve.decomposition.split import Parts
from planner.solve.instance import IntArray

LISTED = 2_000
"""Most choices of one deployment that are listed to know its counts exactly."""

STATES = 10_000
"""Most partial choices at one level of such a list."""


class Ranges(NamedTuple):
    """Least and greatest count of every shape [n]."""

    low: IntArray
    high: IntArray


def ranges(parts: Parts, bound: Bound, chosen: Sequence[Sequence[int]], upper: int, *, minimal: bool) -> Ranges:
    """Counts of every shape in any plan of cost at most `upper`.

    Parameters
    ----------
    parts, bound
        The program taken apart, and a bound of it with each deployment's least cost at its prices.
    chosen
        Each deployment's cheapest choice at those prices; empty where none is known, and then all counts stay possible.
    upper
        Greatest cost of the plans asked about.
    minimal
        Whether only choices matter of which no replica can be left out. Short lists of those then give the counts exactly.
    """
    low = np.zeros(len(parts.cost), dtype=np.int64)
    high = np.zeros(len(parts.cost), dtype=np.int64)
    budget = upper * bound.scale - bound.exact
    for mine, knapsack, costs, least, counts in zip(parts.shapes, parts.knapsacks, bound.costs(parts), bound.least, chosen, strict=True):
        limits = np.array(knapsack.limits, dtype=np.int64)
        threshold = least + budget
        # A search that was cut short may know only a choice that costs more than any in these plans; counts around it say nothing.
        if not counts or sum(cost * count for cost, count in zip(costs, counts, strict=True)) > threshold:
            high[mine] = limits
            continue
        listed = near(knapsack, costs, threshold, LISTED, STATES) if minimal and isinstance(knapsack, Knapsack) else None
        if listed is not None and len(listed):
            low[mine], high[mine] = listed.min(axis=0), listed.max(axis=0)
        else:
            low[mine], high[mine] = interval(knapsack.capacities, costs, limits, knapsack.load, threshold, counts)
    return Ranges(low, high)


def interval(
    capacities: Sequence[int], costs: Sequence[int], limits: IntArray, load: int, threshold: int, counts: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """Least and greatest count of each shape of one covering knapsack in choices of cost at most `threshold`, of which `counts` is one."""
    q, c = np.array(capacities, dtype=np.float64), np.array(costs, dtype=np.float64)
    u, inside = limits.astype(np.float64), np.array(counts, dtype=np.int64)
    cover = _Cover(q, c, u)
    most = threshold * (1 + ROUNDING) + 1

    def possible(tried: IntArray) -> np.ndarray:
        bound: np.ndarray = tried * c + cover.without(load - tried * q)
        return bound * (1 - ROUNDING) <= most

    low, top = np.zeros_like(inside), inside.copy()
    while bool((low < top).any()):
        middle = (low + top) // 2
        good = possible(middle)
        top, low = np.where(good, middle, top), np.where(good, low, np.minimum(middle + 1, top))
    bottom, high = inside.copy(), limits.copy()
    while bool((bottom < high).any()):
        middle = (bottom + high + 1) // 2
        good = possible(middle)
        bottom, high = np.where(good, middle, bottom), np.where(good, high, np.maximum(middle - 1, bottom))
    return low, high


class _Cover:
    """Fractional covers by all shapes but one, for each shape at once; shapes that serve nothing cover nothing."""

    def __init__(self, q: np.ndarray, c: np.ndarray, u: np.ndarray) -> None:
        useful = np.flatnonzero((q > 0) & (u > 0))
        self.order = useful[np.argsort(c[useful] / q[useful], kind="stable")]
        serves, spends = (q * u)[self.order], (c * u)[self.order]
        self.ratio = np.append((c / np.maximum(q, 1.0))[self.order], np.inf)
        self.served, self.spent = np.concatenate(([0.0], np.cumsum(serves))), np.concatenate(([0.0], np.cumsum(spends)))
        # Place of each shape in the order; after all of them where it covers nothing.
        self.place = np.full(len(q), len(self.order))
        self.place[self.order] = np.arange(len(self.order))
        self.own_served = np.where(self.place < len(self.order), q * u, 0.0)
        self.own_spent = np.where(self.place < len(self.order), c * u, 0.0)

    def without(self, rest: np.ndarray) -> np.ndarray:
        """Cost of covering `rest` [n] without shape i, for every i [n]; infinite where the others do not cover it."""
        before = rest <= self.served[self.place]
        asked = np.maximum(np.where(before, rest, rest + self.own_served), 0.0)
        # The shape in which the cover ends; a load that all of them just cover ends in the last one.
        last = np.clip(np.searchsorted(self.served, asked, side="left") - 1, 0, len(self.order))
        left = np.maximum(asked - self.served[last], 0.0)
        partly = np.where(left > 0, left * np.where(np.isfinite(self.ratio[last]), self.ratio[last], 0.0), 0.0)
        spent = self.spent[last] + partly - np.where(before, 0.0, self.own_spent)
        beyond = asked > self.served[-1] * (1 + ROUNDING)
        found: np.ndarray = np.where(beyond, np.inf, spent)
        return found

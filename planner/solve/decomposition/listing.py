"""All minimal choices of one deployment near its least cost, level by level over its shapes in array operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.solve.decomposition.knapsack import Knapsack
from planner.solve.instance import BoolArray, IntArray

FloatArray = NDArray[np.float64]

STATES_LIMIT = 100_000
"""Most partial choices at one level; a list that would need more is given up."""

# A bound computed in doubles is lowered by this share of itself before it may exclude anything.
ROUNDING = 1e-11


@dataclass
class _States:
    """Partial choices as columns of equal length k: counts so far [k, shapes decided], load left, replicas missing and allowed, cost."""

    counts: IntArray
    rest: IntArray
    wanted: IntArray
    allowed: IntArray
    spent: IntArray

    def __len__(self) -> int:
        return len(self.rest)

    def take(self, chosen: BoolArray | IntArray) -> _States:
        return _States(self.counts[chosen], self.rest[chosen], self.wanted[chosen], self.allowed[chosen], self.spent[chosen])


class _Family(NamedTuple):
    """Shapes of one family in ratio order: capacities, costs and limits [n]."""

    order: list[int]
    q: IntArray
    c: IntArray
    u: IntArray


def near(knapsack: Knapsack, costs: Sequence[int], threshold: int, most: int, partial: int = STATES_LIMIT) -> IntArray | None:
    """List all minimal choices of cost up to `threshold`, as counts [k, n], or None when there are more than `most`, or more than `partial` on the way.

    A choice is minimal when no replica can be left out. Others are dominated: costs and the use of joining rows are not negative.
    """
    found: list[IntArray] = []
    for members in knapsack.families:
        order = knapsack.ordered(members, costs)
        columns = (np.array([source[i] for i in order], dtype=np.int64) for source in (knapsack.capacities, costs, knapsack.limits))
        family = _within(_Family(order, *columns), knapsack.load, threshold)
        states = _enumerate(knapsack, family, threshold, partial)
        if states is None:
            return None
        counts = np.zeros((len(states), len(costs)), dtype=np.int64)
        counts[:, family.order] = states.counts
        found.append(counts)
        if sum(map(len, found)) > most:
            return None
    return np.concatenate((np.zeros((0, len(costs)), dtype=np.int64), *found))


def _within(family: _Family, load: int, threshold: int) -> _Family:
    """Leave out the shapes of which even one replica ends beyond the threshold."""
    kept = np.flatnonzero(_reachable(load - family.q, family.c, family, 0, threshold))
    return _Family([family.order[i] for i in kept.tolist()], family.q[kept], family.c[kept], family.u[kept])


def _enumerate(knapsack: Knapsack, family: _Family, threshold: int, partial: int) -> _States | None:
    shapes = len(family.order)
    allowed = int(family.u.sum()) if knapsack.maximum is None else knapsack.maximum
    start = (np.array([value], dtype=np.int64) for value in (knapsack.load, knapsack.minimum, allowed, 0))
    states = _States(np.zeros((1, 0), dtype=np.int64), *start)
    for level in range(shapes):
        expanded = _expand(states, family, level, threshold, partial)
        if expanded is None:
            return None
        states = expanded
    done = states.take((states.rest <= 0) & (states.wanted <= 0) & (states.spent <= threshold))
    # Leaving one replica out must uncover the load or miss the minimum.
    spare = knapsack.minimum - done.counts.sum(axis=1) < 0
    removable = (done.counts > 0) & (family.q <= -done.rest[:, None]) & spare[:, None]
    return done.take(~removable.any(axis=1))


def _expand(states: _States, family: _Family, level: int, threshold: int, partial: int) -> _States | None:
    """Decide the count of one shape in every way that may still end within the threshold."""
    serves, price = int(family.q[level]), int(family.c[level])
    needed = -(-np.maximum(states.rest, 0) // serves) if serves else np.zeros_like(states.rest)
    high = np.minimum(np.minimum(np.maximum(needed, states.wanted), int(family.u[level])), states.allowed)
    high = np.maximum(high, 0)
    low = _lowest(states, family, level, threshold, high)
    ways = np.maximum(high - low + 1, 0)
    total = int(ways.sum())
    if total > partial:
        return None
    parent = np.repeat(np.arange(len(states)), ways)
    count = np.arange(total) - np.repeat(np.cumsum(ways) - ways, ways) + low[parent]
    grown = _States(
        np.concatenate((states.counts[parent], count[:, None]), axis=1),
        states.rest[parent] - count * serves,
        states.wanted[parent] - count,
        states.allowed[parent] - count,
        states.spent[parent] + count * price,
    )
    return grown.take(_reachable(grown.rest, grown.spent, family, level + 1, threshold))


def _lowest(states: _States, family: _Family, level: int, threshold: int, high: IntArray) -> IntArray:
    """Least count of a shape that may still end within the threshold, by bisection [k].

    The cost of the count and of the fractional rest only grows as the count falls, while the count does not cover more than is left.
    """
    serves, price = int(family.q[level]), int(family.c[level])
    if not serves:
        return np.zeros_like(high)
    low = np.zeros_like(high)
    top = np.minimum(high, np.maximum(states.rest, 0) // serves)
    while bool((low < top).any()):
        middle = (low + top) // 2
        good = _reachable(states.rest - middle * serves, states.spent + middle * price, family, level + 1, threshold)
        top = np.where(good, middle, top)
        low = np.where(good, low, np.minimum(middle + 1, top))
    return low


def _reachable(rest: IntArray, spent: IntArray, family: _Family, level: int, threshold: int) -> BoolArray:
    """Whether a partial choice may end within the threshold: its cost and the fractional cover of the rest, in doubles rounded down [k]."""
    left = np.maximum(rest, 0).astype(np.float64)
    cost: FloatArray = np.zeros(len(rest))
    for position in range(level, len(family.order)):
        serves = int(family.q[position])
        if not serves or not left.any():
            break
        served = np.minimum(left, float(serves * int(family.u[position])))
        cost += served * (int(family.c[position]) / serves)
        left -= served
    possible: BoolArray = (left <= 0) & (spent + cost * (1 - ROUNDING) <= threshold * (1 + ROUNDING) + 1)
    return possible

"""Column generation: a lower bound from prices on the joining rows, and whole choices of single deployments worth combining."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from planner import interrupts
from planner.solve.decomposition.prices import FloatArray, Master, first_prices
from planner.solve.decomposition.split import Parts
from planner.solve.instance import IntArray

ROUNDS = 200
"""Most rounds of column generation."""

STEADY = 1e-7
"""Relative distance of the master from the bound at which the generation ends."""

SAFE_BITS = 56
"""Bits that a plan's cost may have in price units."""

Column = tuple[int, ...]


class Collecting(Protocol):
    """A restricted master that takes columns."""

    def add(self, deployment: int, cost: int, use: IntArray) -> None:
        """Add one column."""


@dataclass(frozen=True)
class Bound:
    """A proved lower bound and where it comes from.

    `value` is the bound in units of the objective, rounded up to what an objective can be; `exact` the same in price units, `scale` of them in one unit of
    the objective. `prices` [r] price the joining rows and `least` [m] is each deployment's own least cost at them, both in price units; `chosen` [m] are its
    counts there, empty where the search ended without any.
    """

    value: int
    exact: int
    scale: int
    prices: IntArray
    least: tuple[int, ...]
    chosen: tuple[Column, ...] = ()

    def costs(self, parts: Parts) -> list[list[int]]:
        """Costs of every deployment's shapes with the rows they use priced [price units]."""
        return priced(parts, self.prices, self.scale)


def priced(parts: Parts, prices: IntArray, scale: int) -> list[list[int]]:
    """Reduced costs of every deployment's shapes [price units]."""
    costs = times(prices, parts.use, parts.cost * scale)
    return [[costs[shape] for shape in mine.tolist()] for mine in parts.shapes]


def times(prices: IntArray, matrix: IntArray, offset: IntArray) -> list[int]:
    """Row vector times matrix plus offset, exact even where 64 bits do not suffice."""
    if float(np.abs(prices).max(initial=0)) * float(np.abs(matrix).max(initial=0)) * (len(prices) + 1) < 2.0**61:
        return [int(value) for value in (offset + prices @ matrix).tolist()]
    return [int(value) for value in offset.astype(object) + prices.astype(object) @ matrix.astype(object)]


@dataclass
class Generation:
    """Columns by deployment, and the best bound so far (None while there is none).

    `unit` divides every value of the objective. `impossible` is set when a deployment cannot be covered at all, or when the bound exceeds `ceiling`, which
    no plan's cost does. `late` tells, where time is limited, that it is up.
    """

    parts: Parts
    unit: int
    steady: float = STEADY
    columns: list[dict[Column, None]] = field(default_factory=list)
    best: Bound | None = None
    impossible: bool = False
    late: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        self.columns = [{} for _ in self.parts.shapes]
        parts = self.parts
        limits = np.concatenate([np.array(knapsack.limits, dtype=np.int64) for knapsack in parts.knapsacks])
        order = np.concatenate(parts.shapes)
        self.ceiling = int(parts.cost[order] @ limits) + int(np.maximum(parts.others_cost, 0) @ parts.most)
        self.scale = 1 << max(0, SAFE_BITS - self.ceiling.bit_length())

    def run(self) -> Bound | None:
        """Alternate between the master's prices and the deployments' best answers until nothing new turns up.

        ::

            bound(pi) = sum_m min { (c + pi a) n } + min { (c_x + pi a_x) x : 0 <= x <= most } - pi room

        holds for every pi >= 0, whatever produced it.
        """
        master = Master(self.parts)
        start = first_prices(self.parts)
        prices = np.zeros(len(self.parts.room)) if start is None else start
        for _ in range(ROUNDS):
            if interrupts.asked() or (self.late is not None and self.late()):
                break
            fresh = 0
            # Prices swing; half way back to the best ones is tried before the master's own.
            steadied = [] if self.best is None else [(self.best.prices / self.scale + prices) / 2]
            for tried in [*steadied, prices]:
                fresh = self.price(tried, master)
                if self.impossible:
                    return self.best
                if fresh:
                    break
            solved = master.solve()
            if not fresh and solved is not None and master.short():
                solved = master.solve() if master.dearer(self.ceiling) else None
                fresh = 1
            if solved is None or not fresh:
                break
            prices, relaxed = solved
            if self.best is not None and relaxed * self.scale - self.best.exact <= self.steady * abs(self.best.exact):
                break
        return self.best

    def known(self, deployment: int) -> IntArray:
        """Choices of a deployment so far [k, n]; none where every search for one was cut short."""
        found = list(self.columns[deployment])
        return np.array(found, dtype=np.int64).reshape(len(found), len(self.parts.shapes[deployment]))

    def at(self, prices: FloatArray) -> Bound | None:
        """Bound at given prices alone; None where a deployment cannot be covered."""
        self.price(prices, None)
        return self.best

    def price(self, prices: FloatArray, master: Collecting | None) -> int:
        """Ask every deployment for its best choice at the prices; the number of new columns."""
        parts = self.parts
        whole = np.rint(prices * self.scale).astype(np.int64)
        fresh, least, chosen = 0, [], []
        for deployment, costs in enumerate(priced(parts, whole, self.scale)):
            cover = parts.knapsacks[deployment].cheapest(costs)
            if cover.bound is None:
                self.impossible = True
                return 0
            least.append(cover.bound)
            chosen.append(cover.counts or ())
            if cover.counts is not None and cover.counts not in self.columns[deployment]:
                self.columns[deployment][cover.counts] = None
                fresh += 1
                if master is not None:
                    mine, counts = parts.shapes[deployment], np.array(cover.counts, dtype=np.int64)
                    master.add(deployment, int(parts.cost[mine] @ counts), parts.use[:, mine] @ counts)
        others = times(whole, parts.others_use, parts.others_cost * self.scale)
        exact = sum(least) + sum(min(cost, 0) * most for cost, most in zip(others, parts.most.tolist(), strict=True))
        exact -= sum(price * room for price, room in zip(whole.tolist(), parts.room.tolist(), strict=True))
        if self.best is None or exact > self.best.exact:
            value = -(-exact // (self.scale * self.unit)) * self.unit
            self.best = Bound(value, exact, self.scale, whole, tuple(least), tuple(chosen))
            self.impossible = value > self.ceiling
        return fresh

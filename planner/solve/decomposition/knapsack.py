"""The covering knapsack of one deployment and its least cost, in exact integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Protocol

NODE_LIMIT = 20_000
"""Nodes after which one pricing gives up its proof and keeps the relaxation as bound."""


@dataclass(frozen=True, slots=True)
class Cover:
    """Counts that cover the load (None: none was found), and a proved lower bound of the cost (None: there is no cover at all)."""

    counts: tuple[int, ...] | None
    bound: int | None


class Covering(Protocol):
    """What column generation asks of one deployment's choices."""

    @property
    def capacities(self) -> tuple[int, ...]:
        """What one replica of each shape serves."""

    @property
    def limits(self) -> tuple[int, ...]:
        """Most replicas of each shape."""

    @property
    def load(self) -> int:
        """What all replicas must serve at least."""

    def cheapest(self, costs: Sequence[int]) -> Cover:
        """Find the cheapest choice, with a proved bound."""


@dataclass(frozen=True)
class Knapsack:
    """The choices of one deployment: how many replicas of each of its shapes.

    ::

        sum_i q_i n_i >= load,   minimum <= sum_i n_i <= maximum,   0 <= n_i <= u_i integer,   n_i > 0 in one family only

    with q `capacities` and u `limits`. `families` are lists of shapes; there is one of all shapes unless only one form may run. Costs are not negative and
    change from question to question, the rest stays. With `coarse` > 0 a search ends within 1 / 2^coarse of the least cost: prices at which many shapes serve
    equally dearly leave it long chases after less.
    """

    capacities: tuple[int, ...]
    limits: tuple[int, ...]
    load: int
    minimum: int = 0
    maximum: int | None = None
    families: tuple[tuple[int, ...], ...] = ()
    coarse: int = 0

    def ordered(self, family: Sequence[int], costs: Sequence[int]) -> list[int]:
        """Shapes of a family that can serve, by cost per capacity compared without rounding, those that serve nothing last."""
        q = self.capacities

        def compare(first: int, second: int) -> int:
            return costs[first] * q[second] - costs[second] * q[first] or first - second

        useful = [i for i in family if self.limits[i] and q[i]]
        idle = [i for i in family if self.limits[i] and not q[i]] if self.minimum else []
        return sorted(useful, key=cmp_to_key(compare)) + sorted(idle, key=lambda i: (costs[i], i))

    def cheapest(self, costs: Sequence[int]) -> Cover:
        """Least cost by branch and bound in ratio order, with the fractional cover as bound."""
        best: _Search | None = None
        least: int | None = None
        for family in self.families:
            search = _Search(self, self.ordered(family, costs), costs)
            relaxed = search.run()
            if relaxed is None:
                continue
            bound = relaxed if search.cut else max(relaxed, search.cost - search.near)
            least = bound if least is None else min(least, bound)
            if search.best is not None and (best is None or search.cost < best.cost):
                best = search
        return Cover(None if best is None else best.counts(len(costs)), least)


class _Search:
    """Branch and bound over the shapes of one family."""

    def __init__(self, knapsack: Knapsack, order: list[int], costs: Sequence[int]) -> None:
        self.knapsack, self.order = knapsack, order
        self.q = [knapsack.capacities[i] for i in order]
        self.c = [costs[i] for i in order]
        self.u = [knapsack.limits[i] for i in order]
        self.most = sum(self.u) if knapsack.maximum is None else knapsack.maximum
        self.chosen = [0] * len(order)
        self.best: list[int] | None = None
        self.cost: int = 0
        self.near: int = 0
        self.nodes = 0
        # Cheapest replica from each shape on: what a missing minimum costs at least.
        self.filler = [min(self.c[start:], default=0) for start in range(len(order) + 1)]

    @property
    def cut(self) -> bool:
        """Whether the search ended before its proof."""
        return self.nodes > NODE_LIMIT

    def run(self) -> int | None:
        """Search, and give the relaxation's value; None when nothing covers the load."""
        relaxed = fractional(self.q, self.c, self.u, 0, self.knapsack.load)
        if relaxed is not None:
            self._branch(0, self.knapsack.load, self.knapsack.minimum, self.most, 0)
            if self.best is None and not self.cut:
                return None
        return relaxed

    def counts(self, shapes: int) -> tuple[int, ...]:
        """Best counts in the order of the deployment's shapes."""
        found = [0] * shapes
        for position, shape in enumerate(self.order):
            found[shape] = self.best[position] if self.best is not None else 0
        return tuple(found)

    def _branch(self, start: int, rest: int, wanted: int, allowed: int, spent: int) -> None:
        self.nodes += 1
        if rest <= 0 and wanted <= 0:
            if self.best is None or spent < self.cost:
                self.best, self.cost = [*self.chosen[:start], *([0] * (len(self.order) - start))], spent
                self.near = spent >> self.knapsack.coarse if self.knapsack.coarse else 0
            return
        if start == len(self.order) or self.cut:
            return
        price, serves = self.c[start], self.q[start]
        needed = -(-rest // serves) if rest > 0 and serves else 0
        most = min(self.u[start], max(needed, wanted), allowed)
        for count in range(most, -1, -1):
            after = rest - count * serves
            bound = fractional(self.q, self.c, self.u, start + 1, after)
            if bound is None:
                break  # fewer of this shape cannot cover either
            bound = max(bound, (wanted - count) * self.filler[start + 1])
            if self.best is not None and spent + count * price + bound >= self.cost - self.near:
                if count < most and wanted <= 0:
                    break  # the bound only grows as better shapes give way to worse ones
                continue
            self.chosen[start] = count
            self._branch(start + 1, after, wanted - count, allowed - count, spent + count * price)
        self.chosen[start] = 0


def fractional(q: Sequence[int], c: Sequence[int], u: Sequence[int], start: int, rest: int) -> int | None:
    """Cost of covering `rest` by fractions of the shapes from `start` on, rounded down; None when all of them do not cover it."""
    cost = 0
    for position in range(start, len(q)):
        if rest <= 0:
            return cost
        whole = u[position] * q[position]
        if whole >= rest:
            return cost + rest * c[position] // q[position]
        cost += u[position] * c[position]
        rest -= whole
    return cost if rest <= 0 else None

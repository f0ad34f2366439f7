"""Choices of one deployment that must survive a loss: what every real plan's counts satisfy, whatever their places.

Let T be what all replicas serve, L the load, R what must be left, and D the domains that can hold something. Each replica touches at least one domain and the fullest
one carries at least the mean, so every plan that survives has::

    T >= L,     T - T_g / D_g >= R  for every group g of shapes,     T - q_s ceil(n_s / D_s) >= R  for every shape s in use

and the replicas of each group fit into D_g bins of size T - R. More replicas never break one of these, so minimal choices suffice.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.solve.decomposition.knapsack import Cover
from planner.solve.instance import IntArray
from planner.solve.survival.packing import packable

NODES = 4_000
"""Nodes of one search; what it leaves open then bounds the answer."""

NEAR = 5e-5
"""Share of the cost by which a better choice may be missed; the bound is lowered by as much."""

MORE = 8
"""How many times as many choices are looked at as are listed."""

FEW = 10
"""Most replicas for which a split over the domains is searched for."""

# What is computed in doubles is lowered by this share of itself before it may exclude anything.
ROUNDING = 1e-11


@dataclass(frozen=True)
class Group:
    """Shapes whose domains are known together: positions of its `shapes`, and how many `domains` can hold one of them."""

    shapes: frozenset[int]
    domains: int


@dataclass(frozen=True)
class SurvivingKnapsack:
    """The choices of one deployment: `capacities` q and `limits` of its shapes, `hosts` D_s [n], the load, and what must be left after a loss."""

    capacities: tuple[int, ...]
    limits: tuple[int, ...]
    hosts: tuple[int, ...]
    groups: tuple[Group, ...]
    asked: int
    rest: int
    seen: dict[tuple[int, ...], None] = field(default_factory=dict, compare=False, repr=False)
    """Choices found before: the next search starts from the best of them."""

    @property
    def load(self) -> int:
        """Least that all replicas must serve."""
        domains = self.groups[-1].domains
        return max(self.asked, -(-self.rest * domains // (domains - 1)) if domains > 1 else self.asked)

    def cheapest(self, costs: Sequence[int]) -> Cover:
        """Least cost, within `NEAR` of itself."""
        search = _Search(self, costs, None, 0, FEW)
        for counts in self.seen:
            search.start(counts, sum(cost * number for cost, number in zip(costs, counts, strict=True)))
        search.run()
        if search.chosen is not None:
            self.seen[search.chosen] = None
        least = min(search.best, search.open)
        bound = None if least == math.inf else math.floor(least * (1 - NEAR) * (1 - ROUNDING))
        return Cover(search.chosen, bound)

    def near(self, costs: Sequence[int], threshold: int, most: int, few: int = FEW) -> IntArray:
        """List minimal choices of cost up to `threshold` that may be split over the domains, the `most` cheapest of those found, as counts [k, n].

        Not all are found where the search grows too long.
        """
        search = _Search(self, costs, float(threshold), most * MORE, few)
        search.run()
        found = np.array(search.found, dtype=np.int64).reshape(-1, len(self.capacities))
        money = [sum(cost * number for cost, number in zip(costs, counts, strict=True)) for counts in search.found]
        kept: list[int] = []
        for number in sorted(range(len(found)), key=money.__getitem__):
            if len(kept) < most and (not self.rest or self.fits(search.found[number])):
                kept.append(number)
        return found[kept]

    def fits(self, counts: Sequence[int], spare: int = 0) -> bool:
        """Whether the replicas may be split over the domains with `spare` of the load to spare; False only where that is proved."""
        size = sum(q * n for q, n in zip(self.capacities, counts, strict=True)) - self.rest - spare
        for group in self.groups:
            items = sorted(((self.capacities[i], counts[i]) for i in group.shapes if counts[i]), reverse=True)
            if not packable(tuple(items), group.domains, size):
                return False
        return True


@dataclass
class _Covering:
    """One linear condition sum_i w_i n_i >= rest, for fractional covers by the shapes from each position on."""

    order: list[int]
    weights: list[float]
    costs: list[float]
    limits: list[int]
    tables: dict[int, tuple[list[float], list[float], list[float]]] = field(default_factory=dict)

    def cost(self, start: int, rest: float) -> float:
        """Least cost of covering `rest` by fractions of the shapes from `start` on; infinite where all of them do not."""
        if rest <= 1e-7:
            return 0.0
        table = self.tables.get(start)
        if table is None:
            reach, spent, ratio = [0.0], [0.0], []
            for position in self.order:
                if position >= start:
                    reach.append(reach[-1] + self.weights[position] * self.limits[position])
                    spent.append(spent[-1] + self.costs[position] * self.limits[position])
                    ratio.append(self.costs[position] / self.weights[position])
            table = self.tables[start] = (reach, spent, ratio)
        reach, spent, ratio = table
        if rest > reach[-1] * (1 + 1e-12):
            return math.inf
        step = min(max(bisect_left(reach, rest), 1), len(ratio))
        return spent[step - 1] + (rest - reach[step - 1]) * ratio[step - 1]


class _Search:
    """Branch and bound over the shapes in ratio order, the fullest count first: the cheapest choice, or all up to a threshold."""

    def __init__(self, knapsack: SurvivingKnapsack, costs: Sequence[int], threshold: float | None, most: int, few: int) -> None:
        self.knapsack, self.most, self.few = knapsack, most, few
        q = knapsack.capacities
        order = sorted((i for i in range(len(q)) if knapsack.limits[i] and q[i]), key=lambda i: (costs[i] / q[i], i))
        self.order = order
        self.q = [q[i] for i in order]
        self.c = [costs[i] for i in order]
        self.u = [knapsack.limits[i] for i in order]
        self.d = [knapsack.hosts[i] for i in order]
        self.domains = [group.domains for group in knapsack.groups]
        self.of = [[g for g, group in enumerate(knapsack.groups) if i in group.shapes] for i in order]
        self.by_load = sorted(range(len(order)), key=lambda position: -self.q[position])
        self.plain = self._covering(-1)
        self.coverings = [self.plain, *(self._covering(g) for g in range(len(self.domains)) if knapsack.rest)]
        self.count = [0] * len(order)
        self.within = [0] * len(self.domains)
        self.listing = threshold is not None
        self.limit = math.inf if threshold is None else threshold * (1 + ROUNDING) + 1
        self.best = self.open = math.inf
        self.chosen: tuple[int, ...] | None = None
        self.found: list[tuple[int, ...]] = []
        self.nodes = 0

    def _covering(self, group: int) -> _Covering:
        positions = range(len(self.order))
        less = 0.0 if group < 0 else 1.0 / self.domains[group]
        weights = [self.q[p] * (1.0 - less) if group in self.of[p] else float(self.q[p]) for p in positions]
        useful = sorted((p for p in positions if weights[p] > 1e-9), key=lambda p: self.c[p] / weights[p])
        return _Covering(useful, weights, [float(cost) for cost in self.c], self.u)

    def start(self, counts: tuple[int, ...], money: int) -> None:
        """Learn of a choice before the search."""
        if money < self.best:
            self.best, self.chosen = money, counts
            self.limit = money * (1 - NEAR)

    def run(self) -> None:
        """Search from the start."""
        if self.order:
            self._branch(0, 0, 0, 0, 0.0)

    def _survives(self, total: int, lost: int) -> bool:
        """Whether a total keeps the load and, `lost` being the greatest loss of a shape, what must be left."""
        rest = self.knapsack.rest
        if total < self.knapsack.asked or total - lost < rest:
            return False
        return all((total - rest) * domains >= inside for domains, inside in zip(self.domains, self.within, strict=True))

    def _splits(self, depth: int, total: int) -> bool:
        """Whether the counts decided so far may be split over the domains; few replicas only."""
        if not self.knapsack.rest or sum(self.count[:depth]) > self.few:
            return True
        size = total - self.knapsack.rest
        for group, domains in enumerate(self.domains):
            items = tuple((self.q[p], self.count[p]) for p in self.by_load if p < depth and self.count[p] and group in self.of[p])
            if not packable(items, domains, size):
                return False
        return True

    def _put(self, position: int, number: int) -> None:
        """Set the count of one shape."""
        change = (number - self.count[position]) * self.q[position]
        self.count[position] = number
        for group in self.of[position]:
            self.within[group] += change

    def _ends(self, position: int, total: int, lost: int) -> bool:
        """Whether the counts so far, of which `position` is the last, are a choice."""
        number = self.count[position]
        here = max(lost, self.q[position] * -(-number // self.d[position])) if number else lost
        return self._survives(total, here) and self._splits(position + 1, total)

    def _most(self, position: int, total: int, lost: int) -> int:
        """Least count of a shape that makes a choice of those before it; one more than there is where none does."""
        q, rest = self.q[position], self.knapsack.rest
        number = max(0, -(-(max(self.knapsack.asked, rest + lost) - total) // q))
        for group, domains in enumerate(self.domains):
            short = domains * (rest - total) + self.within[group]
            gain = q * (domains - 1 if group in self.of[position] else domains)
            if short > 0 and gain:
                number = max(number, -(-short // gain))
        while number <= self.u[position]:
            self._put(position, number)
            if self._ends(position, total + number * q, lost):
                break
            number += 1
        self._put(position, 0)
        return min(number, self.u[position] + 1)

    def _branch(self, position: int, total: int, lost: int, spent: int, bound: float) -> None:
        self.nodes += 1
        if self.nodes > NODES:
            self.open = min(self.open, bound)
            return
        q, price, u = self.q[position], self.c[position], self.u[position]
        following = position + 1
        last = following == len(self.order)
        number = self._most(position, total, lost)
        if number <= u:
            self._put(position, number)
            self._keep(spent + number * price)
            number -= 1
        elif last:
            return
        number = min(number, u)
        if last or (self.listing and len(self.found) >= self.most):
            self._put(position, 0)
            return
        asked, rest, limit = self.knapsack.asked, self.knapsack.rest, self.limit
        before = [math.inf] * (len(self.domains) + 1)
        while number >= 0:
            self._put(position, number)
            now, money = total + number * q, spent + number * price
            # Each condition's least cost is convex in the number: beyond the limit and rising, fewer replicas end beyond it too.
            beyond, least = -1, 0.0
            for which, covering in enumerate(self.coverings):
                needed = asked - now if which == 0 else rest - now + self.within[which - 1] / self.domains[which - 1]
                least = max(least, money + covering.cost(following, needed))
                if least > limit:
                    beyond = which
                    break
            if beyond >= 0:
                if least >= before[beyond]:
                    break
                before[beyond] = least
            else:
                here = max(lost, q * -(-number // self.d[position])) if number else lost
                if money + self.plain.cost(following, rest + here - now) <= limit:
                    self._branch(following, now, here, money, least)
                    if self.listing and (len(self.found) >= self.most or self.nodes > NODES):
                        break
                    limit = self.limit
            number -= 1
        self._put(position, 0)

    def _keep(self, money: int) -> None:
        if money > self.limit:
            return
        counts = [0] * len(self.knapsack.capacities)
        for position, shape in enumerate(self.order):
            counts[shape] = self.count[position]
        if self.listing:
            self.found.append(tuple(counts))
        else:
            self.start(tuple(counts), money)

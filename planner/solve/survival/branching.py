"""Branch and bound over the replicas of one deployment that must survive a loss: the cheapest choice, or all up to a threshold."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.solve.survival.packing import packable

if TYPE_CHECKING:
    from planner.solve.survival.knapsack import SurvivingKnapsack

NODES = 4_000
"""Nodes of one search; what it leaves open then bounds the answer."""

NEAR = 5e-5
"""Share of the cost by which a better choice may be missed; the bound is lowered by as much."""

ROUNDING = 1e-11
"""What is computed in doubles is lowered by this share of itself before it may exclude anything."""

HALVINGS = 30
"""Steps in which the price of a replica is found."""


@dataclass
class Covering:
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


class Search:
    """Branch and bound over the shapes of one family in ratio order, the fullest count first: the cheapest choice, or all up to a threshold."""

    def __init__(
        self, knapsack: SurvivingKnapsack, family: Sequence[int], costs: Sequence[int], threshold: float | None, most: int, few: int
    ) -> None:
        self.knapsack, self.most, self.few = knapsack, most, few
        q = knapsack.capacities
        order = sorted((i for i in family if knapsack.limits[i] and q[i]), key=lambda i: (costs[i] / q[i], i))
        self.order = order
        self.q = [q[i] for i in order]
        self.c = [costs[i] for i in order]
        self.u = [knapsack.limits[i] for i in order]
        self.fullest = [knapsack.fullest[i] for i in order]
        self.domains = [group.domains for group in knapsack.groups]
        self.of = [[g for g, group in enumerate(knapsack.groups) if i in group.shapes] for i in order]
        self.by_load = sorted(range(len(order)), key=lambda position: -self.q[position])
        self.plain = self._covering(-1)
        self.coverings = [self.plain, *(self._covering(g) for g in range(len(self.domains)) if knapsack.rest)]
        self.capped = [[c for c, cap in enumerate(knapsack.caps) if i in cap.shapes] for i in order]
        self.left = [cap.most for cap in knapsack.caps]
        # With the most replicas of all known, each has a price beside its cost, and what is not used of them is paid back.
        self.most_replicas = min((cap.most for cap in knapsack.caps if cap.shapes.issuperset(order)), default=None)
        self.largest = [max(self.q[position:], default=0) for position in range(len(order) + 1)]
        self.replica_price = self._replica_price()
        self.by_replica = self._counting()
        self.used = 0
        self.count = [0] * len(order)
        self.within = [0] * len(self.domains)
        self.listing = threshold is not None
        self.limit = math.inf if threshold is None else threshold * (1 + ROUNDING) + 1
        self.best = self.open = math.inf
        self.chosen: tuple[int, ...] | None = None
        self.found: list[tuple[int, ...]] = []
        self.nodes = 0

    def _covering(self, group: int) -> Covering:
        positions = range(len(self.order))
        less = 0.0 if group < 0 else 1.0 / self.domains[group]
        weights = [self.q[p] * (1.0 - less) if group in self.of[p] else float(self.q[p]) for p in positions]
        useful = sorted((p for p in positions if weights[p] > 1e-9), key=lambda p: self.c[p] / weights[p])
        return Covering(useful, weights, [float(cost) for cost in self.c], self.u)

    def _replica_price(self) -> float:
        """Price of a replica at which fractions of them cover the load with no more replicas than allowed; 0.0 where they do so anyway."""
        most, load = self.most_replicas, float(self.knapsack.load)
        if most is None or not self.order:
            return 0.0

        def used(price: float) -> float:
            number, rest = 0.0, load
            for position in sorted(range(len(self.order)), key=lambda p: (self.c[p] + price) / self.q[p]):
                taken = min(float(self.u[position]), rest / self.q[position])
                number, rest = number + taken, rest - taken * self.q[position]
                if rest <= 0:
                    break
            return number

        low, high = 0.0, 8.0 * max(self.c)
        if used(low) <= most or used(high) > most:
            return 0.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if used(middle) > most else (low, middle)
        return high

    def _counting(self) -> list[tuple[Covering, float]]:
        """Conditions on the number of replicas, as coverings with the price of a replica in them: at least so many (0.0), and at most."""
        found: list[tuple[Covering, float]] = []
        positions = range(len(self.order))
        if self.knapsack.minimum:
            cheapest = sorted(positions, key=lambda p: self.c[p])
            found.append((Covering(cheapest, [1.0] * len(self.order), [float(cost) for cost in self.c], self.u), 0.0))
        if self.replica_price:
            price, weights = self.replica_price, [float(q) for q in self.q]
            costs = [cost + price for cost in self.c]
            found.append((Covering(sorted(positions, key=lambda p: costs[p] / weights[p]), weights, costs, self.u), price))
        return found

    def _counted(self, following: int, now: int) -> float:
        """Least cost of the shapes from `following` on that the number of replicas asks for, beside what all serve `now`."""
        least, most = 0.0, self.most_replicas
        if most is not None and now + (most - self.used) * self.largest[following] < self.knapsack.load:
            return math.inf
        for covering, price in self.by_replica:
            needed = self.knapsack.load - now if price else self.knapsack.minimum - self.used
            least = max(least, covering.cost(following, needed) - price * ((most or 0) - self.used))
        return least

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
        for number, group in enumerate(self.knapsack.groups):
            items = tuple((self.q[p], self.count[p]) for p in self.by_load if p < depth and self.count[p] and number in self.of[p])
            if not packable(items, group.domains, size, group.each):
                return False
        return True

    def _put(self, position: int, number: int) -> None:
        """Set the count of one shape."""
        more = number - self.count[position]
        change = more * self.q[position]
        self.count[position] = number
        self.used += more
        for cap in self.capped[position]:
            self.left[cap] -= more
        for group in self.of[position]:
            self.within[group] += change

    def _ends(self, position: int, total: int, lost: int) -> bool:
        """Whether the counts so far, of which `position` is the last, are a choice."""
        number = self.count[position]
        here = max(lost, self.q[position] * self.fullest[position][number]) if number else lost
        return self._survives(total, here) and self._splits(position + 1, total)

    def _most(self, position: int, total: int, lost: int, top: int) -> int:
        """Least count of a shape, up to `top`, that makes a choice of those before it; one more than that where none does."""
        q, rest = self.q[position], self.knapsack.rest
        number = max(0, -(-(max(self.knapsack.asked, rest + lost) - total) // q), self.knapsack.minimum - self.used)
        for group, domains in enumerate(self.domains):
            short = domains * (rest - total) + self.within[group]
            gain = q * (domains - 1 if group in self.of[position] else domains)
            if short > 0 and gain:
                number = max(number, -(-short // gain))
        while number <= top:
            self._put(position, number)
            if self._ends(position, total + number * q, lost):
                break
            number += 1
        self._put(position, 0)
        return min(number, top + 1)

    def _branch(self, position: int, total: int, lost: int, spent: int, bound: float) -> None:
        self.nodes += 1
        if self.nodes > NODES:
            self.open = min(self.open, bound)
            return
        q, price = self.q[position], self.c[position]
        u = min([self.u[position], *(self.left[cap] for cap in self.capped[position])])
        following = position + 1
        last = following == len(self.order)
        number = self._most(position, total, lost, u)
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
        before = [math.inf] * (len(self.coverings) + 1)
        counted = self.most_replicas is not None or self.knapsack.minimum > 0
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
            if beyond < 0 and counted:
                least = max(least, money + self._counted(following, now))
                beyond = len(self.coverings) if least > limit else -1
            if beyond >= 0:
                # Where larger shapes are still to come, fewer replicas of this one may be what makes room for them.
                if least >= before[beyond] and (least < math.inf or beyond < len(self.coverings)):
                    break
                before[beyond] = least
            else:
                here = max(lost, q * self.fullest[position][number]) if number else lost
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

"""The covering knapsack of a deployment of whose load some may go unserved: what does is one more shape that serves single units.

::

    sum_i q_i n_i + u >= load,   0 <= n_i <= u_i integer,   0 <= u <= most,   n_i > 0 in one family only

Units of load are so many that they are no count to branch over: once all replicas are chosen, u is what they leave. Limits on the number of replicas are
left out, so that the least cost is a bound there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key

from planner.solve.decomposition.knapsack import NODE_LIMIT, Cover, fractional


@dataclass(frozen=True)
class ShortKnapsack:
    """The choices of one deployment: replicas of each of its shapes, then the load that goes unserved, whose capacity is 1 and whose limit is `most`."""

    capacities: tuple[int, ...]
    limits: tuple[int, ...]
    load: int
    families: tuple[tuple[int, ...], ...]

    def cheapest(self, costs: Sequence[int]) -> Cover:
        """Least cost by branch and bound in ratio order, with the fractional cover as bound."""
        found = [_Search(self, family, costs) for family in self.families]
        bounds = [search.bound for search in found if search.bound is not None]
        reached = [search for search in found if search.best is not None]
        best = min(reached, key=lambda search: search.cost, default=None)
        return Cover(None if best is None else best.counts(len(costs)), min(bounds, default=None))


class _Search:
    """Branch and bound over the shapes of one family; `bound` is proved, None where nothing covers the load."""

    def __init__(self, knapsack: ShortKnapsack, family: Sequence[int], costs: Sequence[int]) -> None:
        capacities, last = knapsack.capacities, len(costs) - 1

        def compare(first: int, second: int) -> int:
            return costs[first] * capacities[second] - costs[second] * capacities[first] or first - second

        useful = [shape for shape in family if shape != last and knapsack.limits[shape] and capacities[shape]]
        order = sorted([*useful, last], key=cmp_to_key(compare))
        self.place, self.last = order.index(last), last
        self.each, self.most = costs[last], knapsack.limits[last]
        self.order = [shape for shape in order if shape != last]
        self.q = [capacities[shape] for shape in self.order]
        self.c = [costs[shape] for shape in self.order]
        self.u = [knapsack.limits[shape] for shape in self.order]
        self.chosen = [0] * len(self.order)
        self.best: list[int] | None = None
        self.unserved = self.cost = self.nodes = 0
        self.bound = self.relaxed(0, knapsack.load)
        if self.bound is not None:
            self.branch(0, knapsack.load, 0)
            if self.nodes <= NODE_LIMIT:
                self.bound = None if self.best is None else self.cost

    def counts(self, shapes: int) -> tuple[int, ...]:
        """Best choice in the order of the deployment's shapes."""
        found = [0] * shapes
        for shape, count in zip(self.order, self.best or (), strict=True):
            found[shape] = count
        found[self.last] = self.unserved
        return tuple(found)

    def relaxed(self, start: int, rest: int) -> int | None:
        """Cost of covering `rest` by fractions of the shapes from `start` on and by what may go unserved, rounded down."""
        if rest <= 0:
            return 0
        if start >= self.place:
            # Nothing that is left is cheaper than to leave load unserved.
            short = min(rest, self.most)
            later = fractional(self.q, self.c, self.u, start, rest - short)
            return None if later is None else later + short * self.each
        place = self.place
        within = sum(most * serves for most, serves in zip(self.u[start:place], self.q[start:place], strict=True))
        if rest <= within:
            return fractional(self.q, self.c, self.u, start, rest)
        spent = sum(most * price for most, price in zip(self.u[start:place], self.c[start:place], strict=True))
        later = self.relaxed(place, rest - within)
        return None if later is None else spent + later

    def branch(self, start: int, rest: int, spent: int) -> None:
        """Choose the count of one shape after another; any point may be the last, with the rest unserved."""
        self.nodes += 1
        if rest <= self.most and (self.best is None or spent + max(rest, 0) * self.each < self.cost):
            self.best = [*self.chosen[:start], *([0] * (len(self.order) - start))]
            self.unserved, self.cost = max(rest, 0), spent + max(rest, 0) * self.each
        if start == len(self.order) or rest <= 0 or self.nodes > NODE_LIMIT:
            return
        serves, price = self.q[start], self.c[start]
        for count in range(min(self.u[start], -(-rest // serves)), -1, -1):
            after = self.relaxed(start + 1, rest - count * serves)
            if after is None:
                break  # fewer of this shape cannot cover either
            if self.best is None or spent + count * price + after < self.cost:
                self.chosen[start] = count
                self.branch(start + 1, rest - count * serves, spent + count * price)
            elif start < self.place and count * serves < rest:
                break  # the bound only grows as better shapes give way to worse ones
        self.chosen[start] = 0

"""The covering knapsack of one deployment, in exact integers: least cost, and all minimal covers near it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key

NODE_LIMIT = 20_000
"""Nodes after which one pricing gives up its proof and keeps the relaxation as bound."""


@dataclass(frozen=True, slots=True)
class Cover:
    """Counts that cover the load and their cost; `bound` is proved, equal to `cost` unless the search was cut short, None if nothing covers."""

    counts: tuple[int, ...] | None
    cost: int
    bound: int | None


class Knapsack:
    """min sum c_i n_i over sum q_i n_i >= load, 0 <= n_i <= u_i integer; costs change from call to call, the rest stays."""

    def __init__(self, capacities: Sequence[int], limits: Sequence[int], load: int) -> None:
        self.capacities, self.limits, self.load = tuple(capacities), tuple(limits), load

    def _order(self, costs: Sequence[int]) -> list[int]:
        """Shapes by cost per capacity, compared without rounding."""

        def compare(first: int, second: int) -> int:
            return costs[first] * self.capacities[second] - costs[second] * self.capacities[first]

        return sorted((i for i in range(len(costs)) if self.limits[i]), key=cmp_to_key(compare))

    def cheapest(self, costs: Sequence[int]) -> Cover:
        """Least cost by branch and bound in ratio order, with the fractional cover as bound."""
        order = self._order(costs)
        q, c, u = ([source[i] for i in order] for source in (self.capacities, costs, self.limits))
        best: list[int] | None = None
        best_cost = 0
        chosen = [0] * len(order)
        nodes = 0

        def search(start: int, rest: int, spent: int) -> None:
            nonlocal best, best_cost, nodes
            nodes += 1
            if rest <= 0:
                if best is None or spent < best_cost:
                    best, best_cost = [*chosen[:start], *([0] * (len(order) - start))], spent
                return
            if start == len(order) or nodes > NODE_LIMIT:
                return
            most = min(u[start], -(-rest // q[start]))
            for count in range(most, -1, -1):
                after = rest - count * q[start]
                bound = _fractional(q, c, u, start + 1, after)
                if bound is None:
                    return  # fewer of this shape cannot cover either
                if best is not None and spent + count * c[start] + bound >= best_cost:
                    if count < most:
                        return  # the bound only grows as better shapes give way to worse ones
                    continue
                chosen[start] = count
                search(start + 1, after, spent + count * c[start])
            chosen[start] = 0

        relaxed = _fractional(q, c, u, 0, self.load)
        if relaxed is None:
            return Cover(None, 0, None)
        search(0, self.load, 0)
        if best is None:
            return Cover(None, 0, relaxed)
        counts = [0] * len(costs)
        for position, shape in enumerate(order):
            counts[shape] = best[position]
        return Cover(tuple(counts), best_cost, best_cost if nodes <= NODE_LIMIT else relaxed)

    def near(self, costs: Sequence[int], threshold: int, most: int) -> tuple[list[tuple[int, ...]], bool]:
        """All minimal covers of cost up to `threshold`, and whether the list is complete (at most `most` are listed).

        A cover is minimal when no unit can be left out; others are dominated, as costs and use of rows are not negative.
        """
        order = self._order(costs)
        q, c, u = ([source[i] for i in order] for source in (self.capacities, costs, self.limits))
        found: list[tuple[int, ...]] = []
        chosen = [0] * len(order)
        complete = True
        nodes = 0

        def search(start: int, rest: int, spent: int) -> None:
            nonlocal complete, nodes
            nodes += 1
            if len(found) >= most or nodes > 10 * NODE_LIMIT:
                complete = False
                return
            if rest <= 0:
                if all(chosen[i] == 0 or q[i] > -rest for i in range(start)):
                    counts = [0] * len(costs)
                    for position in range(start):
                        counts[order[position]] = chosen[position]
                    found.append(tuple(counts))
                return
            if start == len(order):
                return
            within = False
            top = min(u[start], -(-rest // q[start]))
            for count in range(top, -1, -1):
                after = rest - count * q[start]
                bound = _fractional(q, c, u, start + 1, after)
                if bound is None:
                    break
                if spent + count * c[start] + bound > threshold:
                    if within or count < top:
                        break
                    continue
                within = True
                chosen[start] = count
                search(start + 1, after, spent + count * c[start])
                if not complete:
                    break
            chosen[start] = 0

        search(0, self.load, 0)
        return found, complete


def _fractional(q: Sequence[int], c: Sequence[int], u: Sequence[int], start: int, rest: int) -> int | None:
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

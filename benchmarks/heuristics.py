"""What a planner without a solver would do: one deployment after another, the cheapest shapes first, best fit into the scopes.

`greedy` mixes shapes (a smaller last replica), `enumerate_shapes` gives every deployment the one shape that serves it cheapest and still fits. Both are tried in
many orders. They are imitations of that style written for comparison, not runs of any named tool.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from planner.solve.instance import Instance

STARTS = 50


class Packing:
    """Scopes of every pool by their free GPUs: `scopes[pool][free]` of them."""

    def __init__(self, instance: Instance) -> None:
        self.scopes = []
        for pool in instance.pools:
            most = int(pool.free.max(initial=0))
            self.scopes.append([int((pool.free == free).sum()) for free in range(most + 1)])

    def copy(self) -> Packing:
        other = Packing.__new__(Packing)
        other.scopes = [list(pool) for pool in self.scopes]
        return other

    def put(self, pool: int, size: int, groups: int) -> int:
        """Place up to `groups` groups by best fit, filling a scope before the next; how many found room."""
        scopes, placed = self.scopes[pool], 0
        for free in range(size, len(scopes)):
            each = free // size
            full = min(scopes[free], (groups - placed) // each)
            scopes[free] -= full
            scopes[free % size] += full
            placed += full * each
            rest = min(groups - placed, each) if scopes[free] else 0
            if rest:
                scopes[free] -= 1
                scopes[free - rest * size] += 1
                placed += rest
            if placed == groups:
                break
        return placed


class _Fleet:
    """The instance in plain lists, shapes of each deployment by price per load."""

    def __init__(self, instance: Instance) -> None:
        columns = instance.shapes
        self.price, self.capacity = columns.price.tolist(), columns.capacity.tolist()
        self.pool, self.size, self.groups = columns.pool.tolist(), columns.size.tolist(), columns.groups.tolist()
        self.loads = instance.loads.tolist()
        self.shapes = [
            sorted(instance.of_deployment(number).tolist(), key=lambda s: (self.price[s] / self.capacity[s], self.size[s] * self.groups[s]))
            for number in range(instance.deployments)
        ]

    def place(self, packing: Packing, shape: int, wanted: int) -> int:
        """Place up to `wanted` replicas; how many found room. A replica that finds room for some of its groups only leaves them used."""
        return packing.put(self.pool[shape], self.size[shape], wanted * self.groups[shape]) // self.groups[shape]


def _mixed(fleet: _Fleet, packing: Packing, deployment: int) -> int | None:
    need, cost = fleet.loads[deployment], 0
    for shape in fleet.shapes[deployment]:
        placed = fleet.place(packing, shape, need // fleet.capacity[shape]) if need > 0 else 0
        need, cost = need - placed * fleet.capacity[shape], cost + placed * fleet.price[shape]
    ends = sorted(fleet.shapes[deployment], key=lambda s: (fleet.capacity[s] < need, fleet.price[s] * -(-need // fleet.capacity[s])))
    for shape in ends:
        placed = fleet.place(packing, shape, -(-need // fleet.capacity[shape])) if need > 0 else 0
        need, cost = need - placed * fleet.capacity[shape], cost + placed * fleet.price[shape]
    return None if need > 0 else cost


def _single(fleet: _Fleet, packing: Packing, deployment: int) -> int | None:
    need = fleet.loads[deployment]
    total = {shape: -(-need // fleet.capacity[shape]) * fleet.price[shape] for shape in fleet.shapes[deployment]}
    for shape in sorted(total, key=lambda s: (total[s], s)):
        wanted, tried = -(-need // fleet.capacity[shape]), packing.copy()
        if fleet.place(tried, shape, wanted) == wanted:
            packing.scopes = tried.scopes
            return total[shape]
    return None


def _run(instance: Instance, orders: Sequence[Sequence[int]], serve: Callable[[_Fleet, Packing, int], int | None]) -> int | None:
    fleet, empty = _Fleet(instance), Packing(instance)
    best: int | None = None
    for order in orders:
        packing, cost = empty.copy(), 0
        for deployment in order:
            part = serve(fleet, packing, deployment)
            if part is None:
                break
            cost += part
        else:
            best = cost if best is None else min(best, cost)
    return best


def orders(instance: Instance, starts: int) -> list[list[int]]:
    """Largest loads (by cost) first, then the deployments with the fewest types, then shuffled."""
    fleet, count = _Fleet(instance), instance.deployments
    by_load = sorted(range(count), key=lambda m: -fleet.price[fleet.shapes[m][0]] / fleet.capacity[fleet.shapes[m][0]] * fleet.loads[m])
    by_choice = sorted(range(count), key=lambda m: len({fleet.pool[s] for s in fleet.shapes[m]}))
    draw = random.Random(0)
    return [by_load, by_choice, *(draw.sample(range(count), count) for _ in range(starts - 2))][:starts]


def greedy(instance: Instance, starts: int = STARTS) -> int | None:
    """Cheapest of many greedy plans that mix shapes [1e-6 $/h], or None when none serves every load."""
    return _run(instance, orders(instance, starts), _mixed)


def enumerate_shapes(instance: Instance, starts: int = STARTS) -> int | None:
    """Cheapest of many plans of one shape per deployment [1e-6 $/h], or None when none serves every load."""
    return _run(instance, orders(instance, starts), _single)

"""Whether replicas can be split over failure domains so that none carries too much."""

from __future__ import annotations

import heapq
from functools import lru_cache

NODES = 150
"""Nodes after which the search gives up and calls a split possible."""

ANY = 10**9
"""As many items in a bin as have room."""

Items = tuple[tuple[int, int], ...]
"""Load of one replica and number of such replicas, largest first."""


@lru_cache(maxsize=200_000)
def packable(items: Items, bins: int, size: int, each: int = ANY) -> bool:
    """Tell whether items fit into `bins` bins of `size`, at most `each` of them in one; False only where that is proved, by an exhaustive search."""
    total = sum(load * number for load, number in items)
    if not items:
        return True
    if size < items[0][0] or total > bins * size or any(number > bins * min(each, size // load) for load, number in items):
        return False
    if sum(number for _, number in items) > bins * each:
        return False
    if len(items) == 1 or _levelled(items, bins, size, each) or _filled(items, bins, size, each):
        return True
    return _Search([load for load, _ in items], size, each).run(tuple(number for _, number in items), bins, bins * size - total)


def _levelled(items: Items, bins: int, size: int, each: int) -> bool:
    """Give each item to the emptiest bin, largest first."""
    levels = [(0, 0)] * min(bins, sum(number for _, number in items))
    for load, number in items:
        for _ in range(number):
            level, held = levels[0]
            heapq.heapreplace(levels, (level + load, held + 1))
    return max(levels)[0] <= size and max(held for _, held in levels) <= each


def _filled(items: Items, bins: int, size: int, each: int) -> bool:
    """Fill one bin after another, largest first."""
    left = [number for _, number in items]
    for _ in range(min(bins, sum(left))):
        room, places = size, each
        for position, (load, _) in enumerate(items):
            taken = min(left[position], room // load, places)
            left[position] -= taken
            room -= taken * load
            places -= taken
        if not any(left):
            return True
    return False


class _Search:
    """Exhaustive search, one bin after another, each with the largest item left in it; gives up as possible."""

    def __init__(self, loads: list[int], size: int, each: int) -> None:
        self.loads, self.size, self.each = loads, size, each
        self.nodes = 0
        self.failed: set[tuple[tuple[int, ...], int]] = set()

    def run(self, left: tuple[int, ...], bins: int, spare: int) -> bool:
        """Whether `left` fits into `bins` bins that may waste `spare` in all."""
        if not any(left):
            return True
        if bins == 0:
            return False
        self.nodes += 1
        if self.nodes > NODES:
            return True
        if (left, bins) in self.failed:
            return False
        first = next(position for position, number in enumerate(left) if number)
        fills: list[tuple[int, tuple[int, ...]]] = []
        self._fills(left, first, first, self.size, spare, (0,) * first, fills)
        for waste, fill in sorted(fills):
            if self.run(tuple(number - taken for number, taken in zip(left, fill, strict=True)), bins - 1, spare - waste):
                return True
        self.failed.add((left, bins))
        return False

    def _fills(
        self,
        left: tuple[int, ...],
        position: int,
        first: int,
        room: int,
        spare: int,
        chosen: tuple[int, ...],
        found: list[tuple[int, tuple[int, ...]]],
    ) -> None:
        if position == len(left):
            if room <= spare:
                found.append((room, chosen))
            return
        load = self.loads[position]
        least = 1 if position == first else 0
        for taken in range(min(left[position], room // load, self.each - sum(chosen)), least - 1, -1):
            self._fills(left, position + 1, first, room - taken * load, spare, (*chosen, taken), found)

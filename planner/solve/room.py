"""Free GPUs by scope while groups are placed: best fit over the pool or over one leaf or spine."""

from __future__ import annotations

import heapq

import numpy as np

from planner.solve.allocation import PlacementError
from planner.solve.instance import IntArray


class Room:
    """Remaining GPUs of every scope of a pool, with the tightest fit found in a few steps.

    `remaining` [D] counts free GPUs, 0 for scopes that must stay closed; `order` [D] is the canonical rank that breaks ties.
    """

    def __init__(self, remaining: IntArray, order: IntArray) -> None:
        self.remaining: list[int] = remaining.tolist()
        self._order: list[int] = order.tolist()
        self._heaps: dict[int, dict[int, list[tuple[int, int]]]] = {}
        self._of: dict[int, list[int]] = {}
        self._groups: list[IntArray] = []

    def group_by(self, ids: IntArray) -> int:
        """Add a partition of the scopes to search in (all zeros: the whole pool) and give its number."""
        number = len(self._groups)
        self._groups.append(ids)
        self._of[number] = ids.tolist()
        for scope in np.argsort(np.array(self._order), kind="stable").tolist():
            self._push(number, scope)
        return number

    def _key(self, partition: int, group: int) -> int:
        return partition * (1 << 40) + group

    def _push(self, partition: int, scope: int) -> None:
        left = self.remaining[scope]
        if left > 0:
            heaps = self._heaps.setdefault(self._key(partition, self._of[partition][scope]), {})
            heapq.heappush(heaps.setdefault(left, []), (self._order[scope], scope))

    def tightest(self, size: int, partition: int, group: int) -> int | None:
        """Scope of a group of the partition with the least room that still holds `size`; None when none does."""
        heaps = self._heaps.get(self._key(partition, group), {})
        for left in sorted(heaps):
            if left < size:
                continue
            heap = heaps[left]
            # Entries go stale when a scope changes; the true one is pushed then.
            while heap and self.remaining[heap[0][1]] != left:
                heapq.heappop(heap)
            if heap:
                return heap[0][1]
        return None

    def take(self, size: int, partition: int, group: int) -> int:
        """Place one group by best fit and give its scope.

        Raises
        ------
        PlacementError
            If no scope of the group holds it.
        """
        scope = self.tightest(size, partition, group)
        if scope is None:
            raise PlacementError(f"no scope is left for a group of {size} GPUs that the rows allowed")
        self.remaining[scope] -= size
        for number in self._of:
            self._push(number, scope)
        return scope

    def slots(self, size: int, partition: int) -> dict[int, int]:
        """Groups of `size` that every group of the partition still holds."""
        ids = self._groups[partition]
        least = int(ids.min())
        held = np.bincount(ids - least, weights=np.array(self.remaining, dtype=np.int64) // size)
        return {least + position: int(count) for position, count in enumerate(held) if count}

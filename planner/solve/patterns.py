"""Fill patterns: what one scope can hold at once, by kind of group.

Only maximal patterns are listed: a scope that can hold more can always hold less.
"""

from __future__ import annotations

from functools import lru_cache

from planner.solve.layout import Item

PATTERN_LIMIT = 2000
"""Above this many patterns, scopes without parts get counts of their own instead: same answer, more variables."""


@lru_cache(maxsize=4096)
def parts_hold(parts: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Say which part takes each of `sizes` (largest first), or None when the parts cannot hold them all.

    `parts` are the free GPUs of each pair or mesh. The search is exact: parts are few and small.
    """
    if not sizes:
        return ()
    size = sizes[0]
    tried: set[int] = set()
    for part, free in sorted(enumerate(parts), key=lambda pair: (pair[1], pair[0])):
        if free < size or free in tried:
            continue
        tried.add(free)
        rest = parts_hold((*parts[:part], free - size, *parts[part + 1 :]), sizes[1:])
        if rest is not None:
            return (part, *rest)
    return None


def holds(free: int, parts: tuple[int, ...], items: tuple[Item, ...], counts: tuple[int, ...]) -> bool:
    """Whether a scope with `free` GPUs in `parts` holds `counts` groups of each kind at once."""
    if sum(item.size * count for item, count in zip(items, counts, strict=True)) > free:
        return False
    inside = [item.size for item, count in zip(items, counts, strict=True) if item.within_part for _ in range(count)]
    return parts_hold(parts, tuple(sorted(inside, reverse=True))) is not None


@lru_cache(maxsize=1024)
def maximal_patterns(free: int, parts: tuple[int, ...], items: tuple[Item, ...]) -> tuple[tuple[int, ...], ...] | None:
    """All maximal fills of a scope as counts by kind, or None when there are more than `PATTERN_LIMIT`."""
    found: list[tuple[int, ...]] = []
    # Kinds bound to parts come first: once they fit, any GPUs that remain serve the others.
    order = sorted(range(len(items)), key=lambda position: (not items[position].within_part, -items[position].size))
    counts = [0] * len(items)

    def fill(step: int, room: int, inside: tuple[int, ...]) -> bool:
        if step == len(order):
            found.append(tuple(counts))
            return bool(parts) or len(found) <= PATTERN_LIMIT
        position = order[step]
        item = items[position]
        most = room // item.size
        if item.within_part:
            while most and parts_hold(parts, tuple(sorted((*inside, *([item.size] * most)), reverse=True))) is None:
                most -= 1
        # The last kind takes all it can: fewer of it would not be maximal.
        least = most if step == len(order) - 1 else 0
        for count in range(most, least - 1, -1):
            counts[position] = count
            taken = (*inside, *([item.size] * count)) if item.within_part else inside
            if not fill(step + 1, room - count * item.size, taken):
                return False
        counts[position] = 0
        return True

    if not fill(0, free, ()):
        return None
    kept: list[tuple[int, ...]] = []
    for pattern in sorted(set(found), key=lambda counts: (-sum(counts), counts)):
        if not any(all(a <= b for a, b in zip(pattern, other, strict=True)) for other in kept):
            kept.append(pattern)
    return tuple(sorted(kept, reverse=True))

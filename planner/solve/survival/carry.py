"""What a choice forces onto the tightest bin of a pool, once the other bins hold as much of it as they may, and how many bins it needs beside those that are full.

::

    forced = n_s - sum_{bins but the tightest} min(slots / groups, floor((T - R) / q_s), most replicas of a domain)

holds where replicas stay inside one bin, so it is used for finding plans and never for a bound. Where a bin is one scope, a group of its size fills it, and what a
choice has beyond the smaller bins must share the other large ones, in every pool and for every deployment::

    groups that fill a bin + ceil((n_s - sum_{smaller bins} min(slots, k)) / k) <= large bins,     k = floor((T - R) / q_s)
"""

from __future__ import annotations

import numpy as np

from planner.solve.decomposition.combining import Choices
from planner.solve.decomposition.split import Parts
from planner.solve.instance import IntArray
from planner.solve.survival.places import Room


def forced(room: Room, parts: Parts, deployment: int, mine: Choices) -> tuple[IntArray, IntArray]:
    """Slots of every (pool, size) that each choice forces onto the tightest bin [k, rows], and what that bin has [rows]."""
    question, columns = room.question, room.question.instance.shapes
    shapes = parts.shapes[deployment]
    caps = mine.counts @ columns.capacity[shapes] - question.rest[deployment]
    starts, width = {}, 0
    has: list[int] = []
    for pool, bins in question.bins.items():
        starts[pool] = width
        width += len(bins.sizes)
        has.extend(bins.slots.min(axis=0).tolist())
    alone = _beside_full(room, parts, deployment, mine, caps)
    use = np.zeros((len(mine), width), dtype=np.int64)
    for position, shape in enumerate(shapes.tolist()):
        counts = mine.counts[:, position]
        if not counts.any() or room.domain(shape) is None or not question.local[shape]:
            continue
        bins = question.bins[room.pool[shape]]
        held = question.slots(shape) // room.groups[shape]
        # Replicas in every bin by choice: what it holds, and what one domain may.
        if room.spread(shape)[0] is not None:
            held = np.minimum(held, room.spread(shape)[1])
        each = np.minimum(held[None, :], (caps // room.capacity[shape])[:, None])
        total = each.sum(axis=1)
        for number, takes in enumerate(room.takes[shape].tolist()):
            if takes:
                tightest = int(bins.slots[:, number].argmin())
                over = np.maximum(counts - (total - each[:, tightest]), 0)
                use[:, starts[bins.pool] + number] += over * (takes * room.groups[shape])
    return np.concatenate((use, alone[0]), axis=1), np.concatenate((np.array(has, dtype=np.int64), alone[1]))


def _beside_full(room: Room, parts: Parts, deployment: int, mine: Choices, caps: IntArray) -> tuple[IntArray, IntArray]:
    """Large bins that each choice takes or fills, by pool and deployment [k, rows], and how many there are [rows]."""
    question, columns = room.question, room.question.instance.shapes
    shapes, rows = parts.shapes[deployment], question.instance.deployments
    use = np.zeros((len(mine), rows * len(question.bins)), dtype=np.int64)
    has = np.zeros(rows * len(question.bins), dtype=np.int64)
    for number, (pool, bins) in enumerate(question.bins.items()):
        own = slice(number * rows, (number + 1) * rows)
        most = int(bins.scopes.free.max())
        if len(bins) < len(bins.scopes) or most not in bins.sizes:
            continue
        large = bins.slots[:, bins.sizes.index(most)] > 0
        has[own] = int(large.sum())
        here = columns.pool[shapes] == pool
        fill = here & (columns.size[shapes] == most)
        use[:, own] = (mine.counts[:, fill] @ columns.groups[shapes[fill]])[:, None]
        needed = np.zeros(len(mine), dtype=np.int64)
        for position in np.flatnonzero(here & ~fill).tolist():
            shape, counts = int(shapes[position]), mine.counts[:, position]
            if counts.any() and room.domain(shape) is not None and question.local[shape]:
                held = question.slots(shape) // room.groups[shape]
                each = np.minimum(caps // room.capacity[shape], int(held.max(initial=0)))
                elsewhere = np.minimum(held[None, ~large], each[:, None]).sum(axis=1)
                needed = np.maximum(needed, -(-np.maximum(counts - elsewhere, 0) // np.maximum(each, 1)))
        use[:, number * rows + deployment] += needed
    return use, has

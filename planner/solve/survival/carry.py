"""What a choice forces onto the tightest bin of a pool, once the other bins hold as much of it as they may.

::

    forced = n_s - sum_{bins but the tightest} min(slots / groups, floor((T - R) / q_s), most replicas of a domain)

holds where replicas stay inside one bin, so it is used for finding plans and never for a bound.
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
    return use, np.array(has, dtype=np.int64)

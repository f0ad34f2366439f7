"""Prices of the joining rows of one program as a start for those of another over other shapes or loads."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from planner.solve.decomposition.columns import Bound
from planner.solve.decomposition.prices import FloatArray
from planner.solve.decomposition.split import Parts
from planner.solve.instance import IntArray


def carried(known: Parts, known_sources: IntArray, bound: Bound, parts: Parts, sources: IntArray) -> FloatArray:
    """Prices of the rows of a program from those of a program over some of its shapes; rows that have none there are free [r].

    Rows are known by their room and their coefficients of the shapes that both have; equal ones come in the same order.
    """
    both = np.intersect1d(known_sources, sources)
    waiting: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for row, price in zip(_named(known, known_sources, both), (bound.prices / bound.scale).tolist(), strict=True):
        waiting[row].append(price)
    found = [waiting[row].pop(0) if waiting[row] else 0.0 for row in _named(parts, sources, both)]
    return np.array(found)


def _named(parts: Parts, sources: IntArray, among: IntArray) -> list[tuple[object, ...]]:
    places = {source: place for place, source in enumerate(sources.tolist())}
    own = [places[source] for source in among.tolist()]
    return [(room, use.tobytes()) for room, use in zip(parts.room.tolist(), np.ascontiguousarray(parts.use[:, own]), strict=True)]

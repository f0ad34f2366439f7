"""From bins to scopes and GPUs: in every bin the largest groups first, best fit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from planner.solve.allocation import PlacementError
from planner.solve.room import Room as Scopes
from planner.solve.seating import Group, Placed, in_order, seat_groups
from planner.solve.survival.places import Places, Room


def scopes_hold(room: Room, places: Places, pool: int) -> bool:
    """Whether the groups of a pool find scopes: sure where sizes divide one another, else tried."""
    sizes = room.question.bins[pool].sizes
    if all(large % small == 0 for small, large in pairwise(sizes)):
        return True
    try:
        _seated(room, places, pool)
    except PlacementError:
        return False
    return True


def seats(room: Room, places: Places) -> tuple[Placed, ...]:
    """Put every replica on concrete scopes and positions.

    Raises
    ------
    PlacementError
        If the groups do not fit.
    """
    instance = room.question.instance
    return in_order(instance, (replica for pool in room.question.bins for replica in _seated(room, places, pool)))


def _seated(room: Room, places: Places, pool: int) -> list[Placed]:
    bins = room.question.bins[pool]
    sizes = room.question.instance.shapes.size.tolist()
    replicas: list[int] = []
    groups: list[list[Group]] = []
    where: list[tuple[Group, int]] = []

    def add(shape: int, parts: tuple[tuple[int, int], ...]) -> None:
        own = [(Group(len(replicas), sizes[shape], within_part=False), chosen) for chosen, count in parts for _ in range(count)]
        replicas.append(shape)
        groups.append([group for group, _ in own])
        where.extend(own)

    for (shape, chosen), count in places.inside.items():
        if room.pool[shape] == pool:
            for _ in range(count):
                add(shape, ((chosen, room.groups[shape]),))
    for shape, parts in places.spanning:
        if room.pool[shape] == pool:
            add(shape, parts)
    left = Scopes(np.array(bins.scopes.free), bins.scopes.order)
    partition = left.group_by(bins.of_scope)
    for group, chosen in sorted(where, key=lambda pair: (-pair[0].size, pair[1])):
        group.scope = left.take(group.size, partition, chosen)

    def blocks(scope: int) -> list[list[int]]:
        counts = bins.scopes.nodes[scope] if bins.scopes.nodes else ()
        starts = np.cumsum([0, *(counts or (int(bins.scopes.free[scope]),))]).tolist()
        return [list(range(start, end)) for start, end in pairwise(starts)]

    return seat_groups(bins.scopes, replicas, groups, blocks)

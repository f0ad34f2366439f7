"""How many replicas of a deployment can keep apart at all, whatever else runs: limits on counts that every plan keeps.

They are written where scopes reach into several domains; where each lies in one, `fractions` finds the limits that matter, those of several deployments too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from planner.solve.instance import BoolArray, Instance, IntArray, PoolScopes, Spread
from planner.solve.seats import nodes_of

Line = tuple[dict[int, int], int]
"""Replicas by shape, weighted, and their limit."""


def allowed(instance: Instance, deployment: int, pool: int) -> BoolArray:
    """Tell which scopes of a pool a deployment may use at least in part [D]."""
    scopes, only = instance.pools[pool], instance.rules_of(deployment).only
    if not only:
        return np.ones(len(scopes), dtype=np.bool_)
    labels = scopes.label(only)
    if labels is not None:
        found: BoolArray = labels > 0
        return found
    return np.fromiter((any(own) for own in scopes.domains[only]), dtype=np.bool_, count=len(scopes))


def number_lines(instance: Instance, deployment: int, spread: Spread, upper: Sequence[int]) -> Iterator[Line]:
    """Limits on the replicas of a deployment that may keep apart; those that the `upper` bounds of the counts keep anyway are left out."""
    columns = instance.shapes
    own = instance.serving(deployment)
    tops: list[tuple[dict[int, int], IntArray]] = []
    for pool in np.unique(columns.pool[own]).tolist():
        mine = own[columns.pool[own] == pool]
        if instance.pools[pool].label(spread.kind) is not None:
            continue
        # Replicas that stay are listed as one group, wherever their groups stand.
        sizes = np.where(instance.kept[mine], 1, columns.size[mine])
        scopes, may = instance.pools[pool], allowed(instance, deployment, pool)
        fewest = dict(zip(mine.tolist(), touched(instance, mine.tolist(), scopes, spread.kind), strict=True))
        least: int | None = None
        for position, size in enumerate(np.unique(sizes).tolist()):
            inside = _most_inside(scopes, may, spread, size)
            terms = {shape: fewest[shape] for shape in mine[sizes >= size].tolist()}
            if position == 0:
                tops.append((fewest, inside))
            total = int(inside.sum())
            if (least is None or total < least) and total < sum(times * upper[shape] for shape, times in terms.items()):
                yield terms, total
                least = total
    if len(tops) > 1:
        everything: dict[int, int] = {}
        together = np.zeros(max(len(inside) for _, inside in tops), dtype=np.int64)
        for terms, inside in tops:
            everything.update(terms)
            together[: len(inside)] += inside
        limit = int(np.minimum(together, spread.most).sum())
        separate = sum(int(inside.sum()) for _, inside in tops)
        if limit < min(separate, sum(times * upper[shape] for shape, times in everything.items())):
            yield everything, limit


def _most_inside(scopes: PoolScopes, may: BoolArray, spread: Spread, size: int) -> IntArray:
    """Most replicas with groups of a size in every domain, by label; where scopes reach into several it is not told how many groups one holds."""
    slots = np.where(may, scopes.free // size, 0)
    reached = {label for own, held in zip(scopes.domains[spread.kind], slots.tolist(), strict=True) if held for label in own}
    found = np.zeros(max(reached, default=-1) + 1, dtype=np.int64)
    found[sorted(reached)] = spread.most
    return found


def touched(instance: Instance, shapes: Sequence[int], scopes: PoolScopes, kind: str) -> list[int]:
    """Fewest domains in which one replica of each shape has GPUs."""
    columns, labels = instance.shapes, scopes.label(kind)
    if labels is None:
        room: dict[int, int] = {}
        for number, own in enumerate(scopes.domains[kind]):
            # A scope without free GPUs lists no nodes.
            for label, free in zip(own, nodes_of(scopes, number) or (0,), strict=False):
                room[label] = room.get(label, 0) + free
        most = max(room.values(), default=1)
        return [max(1, -(-int(columns.gpus[shape]) // max(1, most))) for shape in shapes]
    found = []
    for shape in shapes:
        groups, size = int(columns.groups[shape]), int(columns.size[shape])
        # Replicas that stay are listed as one group.
        held = int(np.bincount(labels, weights=scopes.free // size).max(initial=1.0)) if groups > 1 else 1
        found.append(max(1, -(-groups // max(1, held))))
    return found

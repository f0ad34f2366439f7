"""From scopes to positions: every group gets the GPUs of its scope that it takes, and the replicas their canonical order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from planner.solve.allocation import Asked, allocate
from planner.solve.instance import Instance, PoolScopes


@dataclass(frozen=True, slots=True)
class PlacedGroup:
    """One group on `positions` of scope `scope` (both within its pool)."""

    scope: int
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """One replica of shape `shape` (index in the instance) with its groups in canonical order.

    One that stays is replica `stays` = (seat, number) of those that run.
    """

    shape: int
    groups: tuple[PlacedGroup, ...]
    stays: tuple[int, int] | None = None


@dataclass
class Group:
    """A group on its way: which replica it belongs to, where it went, and its GPUs by blocks of the scope where these are counted."""

    replica: int
    size: int
    within_part: bool
    scope: int = -1
    counted: tuple[tuple[tuple[int, ...], int], ...] = ()


def seat_groups(
    scopes: PoolScopes, replicas: Sequence[int], groups: Sequence[Sequence[Group]], blocks: Callable[[int], list[list[int]]]
) -> list[Placed]:
    """Give every group of every replica (of shapes `replicas`) its positions; `blocks` lists those of a scope that may be used, by part or node.

    Raises
    ------
    PlacementError
        If a scope does not hold its groups.
    """
    by_scope: dict[int, list[Group]] = defaultdict(list)
    for together in groups:
        for group in together:
            by_scope[group.scope].append(group)
    found: list[list[PlacedGroup]] = [[] for _ in replicas]
    for scope, inside in by_scope.items():
        parts = len(scopes.parts[scope]) if scopes.parts else 0
        asked = [Asked(group.size, group.within_part, group.counted) for group in inside]
        for group, positions in zip(inside, allocate(blocks(scope), asked, parts), strict=True):
            found[group.replica].append(PlacedGroup(scope, positions))
    order = scopes.order
    return [
        Placed(shape, tuple(sorted(taken, key=lambda group: (int(order[group.scope]), group.positions))))
        for shape, taken in zip(replicas, found, strict=True)
    ]


def in_order(instance: Instance, placed: Iterable[Placed]) -> tuple[Placed, ...]:
    """Replicas by deployment, shape and place."""
    columns = instance.shapes
    order = [pool.order for pool in instance.pools]
    return tuple(
        sorted(
            placed,
            key=lambda replica: (
                int(columns.deployment[replica.shape]),
                replica.shape,
                int(order[int(columns.pool[replica.shape])][replica.groups[0].scope]),
                replica.groups[0].positions,
            ),
        )
    )

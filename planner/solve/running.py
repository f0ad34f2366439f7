"""Names of GPUs and positions in scopes, both ways: where running replicas sit, and which GPUs a placement uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.plan.shape import Shape
from planner.solve.instance import Instance, IntArray, PoolScopes, Seat
from planner.solve.placement import Placed
from planner.solve.seats import bins_of, nodes_of, used_of

if TYPE_CHECKING:
    from planner.plan.outcome import PlacedReplica
    from planner.topology.fabric import Fabric, GpuId


def all_shapes(shapes: Sequence[Shape], running: Sequence[PlacedReplica]) -> tuple[Shape, ...]:
    """Shapes of the menu, then those of the replicas that run, each once, in order of first appearance."""
    return (*shapes, *dict.fromkeys(replica.shape for replica in running))


def scopes_of(fabric: Fabric, pool: int) -> IntArray:
    """Numbers of the scale-up scopes of one pool, in the fabric's order."""
    return np.flatnonzero(fabric.scopes.pool == pool).astype(np.int64)


def gpus_by_position(fabric: Fabric, scopes: PoolScopes, number: int, scope: int) -> list[GpuId]:
    """Free GPUs of a scope in the order of its positions; `number` is its place in the pool, `scope` that in the fabric."""
    if scopes.parts:
        return [gpu for part in fabric.scopes.sub_scopes(scope) for gpu in part]
    gpus = list(fabric.scopes.free_gpus(scope))
    return [gpus[position] for position in scopes.arranged.get(number, range(len(gpus)))]


def seats_of(
    fabric: Fabric, pools: Sequence[PoolScopes], running: Sequence[PlacedReplica], sources: Mapping[Shape, int]
) -> tuple[Seat, ...]:
    """Seats of the replicas that run; replicas of one shape that use as many GPUs of the same parts and nodes share one.

    `sources` numbers their shapes. Every GPU must be free and of the shape's pool.
    """
    inside: dict[int, dict[int, int]] = {}
    positions: dict[tuple[int, int], dict[tuple[str, int], int]] = {}
    found: dict[tuple[object, ...], list[tuple[tuple[int, tuple[int, ...]], ...]]] = {}
    for replica in running:
        pool = replica.shape.pool
        if pool not in inside:
            inside[pool] = {scope: number for number, scope in enumerate(scopes_of(fabric, pool).tolist())}
        places: dict[int, list[int]] = {}
        for rank in replica.ranks:
            scope = fabric.scope_of(rank.node)
            number = inside[pool][scope]
            if (pool, number) not in positions:
                gpus = gpus_by_position(fabric, pools[pool], number, scope)
                positions[pool, number] = {(gpu.node, gpu.gpu): position for position, gpu in enumerate(gpus)}
            places.setdefault(number, []).append(positions[pool, number][rank.node, rank.gpu])
        used = tuple(
            (number, used_of(bins_of(pools[pool], number), own), used_of(nodes_of(pools[pool], number), own))
            for number, own in sorted(places.items())
        )
        found.setdefault((sources[replica.shape], used), []).append(
            tuple((number, tuple(sorted(own))) for number, own in sorted(places.items()))
        )
    return tuple(Seat(sources_and_use[0], tuple(replicas)) for sources_and_use, replicas in found.items())  # type: ignore[arg-type]


@dataclass(frozen=True)
class ScopeGpus:
    """Free GPUs of one scope by position, and the scope's name."""

    name: str
    gpus: tuple[tuple[str, int], ...]

    def rank_places(self, positions: Sequence[int]) -> list[tuple[str, int, str]]:
        """Node, GPU and scope of each position."""
        return [(*self.gpus[position], self.name) for position in positions]


def scope_gpus(fabric: Fabric, instance: Instance, placed: Sequence[Placed]) -> dict[tuple[int, int], ScopeGpus]:
    """GPUs of the scopes that a placement uses, by pool and position of the scope in its pool."""
    found: dict[tuple[int, int], ScopeGpus] = {}
    numbers: dict[int, IntArray] = {}
    for replica in placed:
        pool = int(instance.shapes.pool[replica.shape])
        if pool not in numbers:
            numbers[pool] = scopes_of(fabric, pool)
        for group in replica.groups:
            if (pool, group.scope) not in found:
                scope = int(numbers[pool][group.scope])
                gpus = gpus_by_position(fabric, instance.pools[pool], group.scope, scope)
                found[pool, group.scope] = ScopeGpus(fabric.scopes.name(scope), tuple((gpu.node, gpu.gpu) for gpu in gpus))
    return found

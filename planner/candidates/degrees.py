"""Which degrees and localities are worth a look on one pool: the grid of the menu, before legality and physics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.architecture import ModelArchitecture
from planner.plan.shape import Degrees
from planner.problem.documents import Deployment
from planner.topology.fabric import Fabric, Pool

# Pipelines deeper than this pay more hops than any fleet seen needs; a deployment that names its own degrees is not bound by the list.
PIPELINE_DEGREES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16)
# Stages of more scale-up scopes than this are possible but nobody runs them unasked.
STAGE_SCOPES = 8
# Scopes that are thought of beside those of a pool where nothing fits.
MORE_SCOPES = 4


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees on a pool with the levels that join their parts; levels are indices into `Pool.levels`.

    `groups` of `group_size` GPUs each sit inside one scale-up scope; `group_level` joins one of them.
    """

    degrees: Degrees
    tp_level: int
    stage_level: int
    stage_scopes: int
    replica_level: int
    group_level: int
    groups: int
    group_size: int


@dataclass(frozen=True, slots=True)
class PoolRoom:
    """What a pool can hold, told by its scopes: the most free GPUs of one scope and of the pool, scopes and levels.

    `sub_levels` maps the index of a level below the scale-up scope (a pair, a mesh) to the most free GPUs one such part has.
    """

    pool: Pool
    scale_up: int
    most_free: int
    total_free: int
    scopes: int
    sub_levels: tuple[tuple[int, int], ...]
    outer_levels: tuple[int, ...]


def pool_room(fabric: Fabric, pool: Pool) -> PoolRoom:
    """Sum up the scopes of `pool`: how large a group can be, and at which levels a replica can spread."""
    table = fabric.scopes
    members = np.flatnonzero(table.pool == pool.index)
    free = table.free[members]
    scale_up = pool.levels.index(pool.scale_up_level)
    scopes = int(np.count_nonzero(free))
    sub_levels = tuple((index, largest) for index in range(1, scale_up) if (largest := _largest_sub_scope(fabric, members)) > 1)
    outer = tuple(range(scale_up + 1, len(pool.levels))) if scopes > 1 else ()
    outer = tuple(index for index in outer if _joins_several(fabric, members[free > 0], pool.levels[index]))
    return PoolRoom(
        pool=pool,
        scale_up=scale_up,
        most_free=int(free.max(initial=0)),
        total_free=int(free.sum()),
        scopes=scopes,
        sub_levels=sub_levels,
        outer_levels=outer,
    )


def room_to_be(fabric: Fabric, pool: Pool) -> PoolRoom:
    """Sum up the scopes of `pool` as if nothing ran on them, and some more were there: what freeing GPUs or adding nodes could make of it."""
    table = fabric.scopes
    capacity = table.capacity[np.flatnonzero(table.pool == pool.index)]
    now = pool_room(fabric, pool)
    scopes = len(capacity) + MORE_SCOPES
    return replace(
        now,
        most_free=int(capacity.max(initial=0)),
        total_free=int(capacity.sum()) + MORE_SCOPES * int(capacity.max(initial=0)),
        scopes=scopes,
        outer_levels=tuple(range(now.scale_up + 1, len(pool.levels))),
    )


def _largest_sub_scope(fabric: Fabric, members: np.ndarray) -> int:
    """Most free GPUs in one part (pair, mesh) of any scope of the pool."""
    parts = (part for member in members for part in fabric.scopes.sub_scopes(int(member)))
    return max((len(part) for part in parts), default=0)


def _joins_several(fabric: Fabric, members: np.ndarray, level: str) -> bool:
    """Tell whether some group of `level` holds at least two of the scopes `members`."""
    table = fabric.scopes
    if level == "leaf":
        labels = table.leaf[members]
    elif level == "spine":
        labels = table.spine[members]
    else:
        return len(members) > 1
    return len(set(labels.tolist())) < len(labels)  # numpy.unique would load numpy.ma


def tensor_degrees(deployment: Deployment, room: PoolRoom, architecture: ModelArchitecture) -> tuple[int, ...]:
    """Tensor-parallel degrees to look at, illegal and too wide ones included so that they can be refused with a reason.

    Every degree up to the size of a scope, and the next doubling, which people ask for when one domain is too small.
    """
    asked = deployment.parallelism.tp if deployment.parallelism is not None else None
    if asked is not None:
        return tuple(asked)
    heads = max((kind.attention.heads for kind in architecture.layer_kinds if kind.attention is not None), default=room.pool.scope_size)
    widest = min(room.pool.scope_size, heads)
    doubled = 1 << int(room.pool.scope_size).bit_length()
    beyond = (doubled,) if doubled <= heads and room.total_free >= doubled else ()
    return (*range(1, widest + 1), *beyond)


def stage_degrees(deployment: Deployment, room: PoolRoom, architecture: ModelArchitecture, tensor: int) -> Iterator[tuple[int, int]]:
    """Pairs of (data parallel, expert parallel) for a stage of `tensor` GPUs wide ranks.

    Attention data parallelism inside a replica only makes sense beside experts: for a dense model it is another replica.
    """
    parallelism = deployment.parallelism
    asked_dp = parallelism.dp if parallelism is not None else None
    asked_ep = parallelism.ep if parallelism is not None else None
    moe = any(kind.feed_forward is not None and kind.feed_forward.experts for kind in architecture.layer_kinds)
    if asked_dp is not None:
        data_degrees: tuple[int, ...] = tuple(asked_dp)
    elif moe:
        widest = max(room.most_free, room.pool.scope_size * min(room.scopes, STAGE_SCOPES) if room.outer_levels else 0)
        data_degrees = tuple(1 << exponent for exponent in range(12) if tensor << exponent <= widest)
    else:
        data_degrees = (1,)
    for data in data_degrees:
        width = tensor * data
        if asked_ep is not None:
            experts: tuple[int, ...] = tuple(asked_ep)
        elif moe:
            experts = (1, width) if width > 1 else (1,)
        else:
            experts = (1,)
        for expert in experts:
            yield data, expert


def pipeline_degrees(deployment: Deployment, room: PoolRoom, architecture: ModelArchitecture, stage: int) -> tuple[int, ...]:
    """Pipeline degrees whose replica fits the free GPUs of the pool; a fixed choice is kept as asked."""
    asked = deployment.parallelism.pp if deployment.parallelism is not None else None
    if asked is not None:
        return tuple(asked)
    return tuple(degree for degree in PIPELINE_DEGREES if degree <= architecture.layers and stage * degree <= room.total_free)


def layouts(room: PoolRoom, degrees: Degrees, *, paired: bool = False) -> Iterator[Layout]:
    """Ways to lay `degrees` over the levels of a pool, smallest level first; none when no scope can hold a TP group.

    Inside one scope the replica is one group. A pipeline whose stages sit in different scopes is one group a stage; a stage wider than a
    scope (wide expert parallelism) is several groups of whole TP ranks. With `paired` the stages of a
    pipeline inside one host may also keep to a pair or mesh each.
    """
    tensor, stage, gpus = degrees.tensor_parallel, degrees.stage_gpus, degrees.gpus
    if gpus == 1:
        yield Layout(degrees, 0, 0, 1, 0, 0, 1, 1)
        return
    for level, largest in room.sub_levels:
        if gpus <= largest:
            yield Layout(degrees, level, level, 1, level, level, 1, gpus)
    inside = room.scale_up
    if paired and room.scopes == 1:
        # In the one host there is, every stage has a pair or mesh of its own; its times stay those that the host promises.
        for level, largest in room.sub_levels:
            if 1 < stage <= largest < gpus <= room.most_free:
                yield Layout(degrees, 0 if tensor == 1 else inside, inside, 1, inside, level, gpus // stage, stage)
    if gpus <= room.most_free:
        tensor_level = 0 if tensor == 1 else inside
        yield Layout(degrees, tensor_level, 0 if stage == 1 else inside, 1, inside, inside, 1, gpus)
    if tensor > room.most_free:
        return
    group = stage if stage <= room.most_free else _group_of_whole_ranks(room, tensor, stage)
    if group == 0 or gpus // group < 2:
        return
    scopes = stage // group
    group_level = 0 if group == 1 else inside
    for outer in room.outer_levels:
        stage_level = (0 if stage == 1 else inside) if scopes == 1 else outer
        yield Layout(degrees, 0 if tensor == 1 else inside, stage_level, scopes, outer, group_level, gpus // group, group)


def _group_of_whole_ranks(room: PoolRoom, tensor: int, stage: int) -> int:
    """Largest part of a stage that one scope holds, made of whole TP groups and dividing the stage evenly; 0 when none."""
    for size in range(room.most_free - room.most_free % tensor, 0, -tensor):
        if stage % size == 0 and stage // size <= STAGE_SCOPES:
            return size
    return 0

"""Shapes that another shape of the same deployment can always stand in for leave before the solver sees them."""

from __future__ import annotations

import numpy as np

from planner.solve.instance import Container, Instance


def dominated_by(instance: Instance, loser: int, winner: int) -> bool:
    """Whether copies of `winner` fit into the GPUs of one `loser`, serve as much, and cost and communicate no more.

    The copies use GPUs of the loser only, so no row of `occupancy`, `locality`, `billing` or `budget` can get worse, and no tie-breaking
    stage either; `replicas` can, so callers ask only where it allows any number. Of two equal shapes the first stays.
    """
    columns = instance.shapes
    large, small = int(columns.size[loser]), int(columns.size[winner])
    if large % small or (columns.within_part[winner] and not columns.within_part[loser]):
        return False
    held = int(columns.groups[loser]) * (large // small)
    keeps_together = Container.LEAF if columns.groups[loser] == 1 else int(columns.container[loser])
    if columns.groups[winner] > 1 and int(columns.container[winner]) > keeps_together:
        return False
    if columns.capacity[winner] <= 0:
        return False
    copies = -(-int(columns.capacity[loser]) // int(columns.capacity[winner]))
    if copies * int(columns.groups[winner]) > held:
        return False
    cost = copies * int(columns.price[winner]) - int(columns.price[loser])
    communication = copies * int(columns.comm[winner]) - int(columns.comm[loser])
    if cost > 0 or communication > 0:
        return False
    spare = copies * int(columns.capacity[winner]) - int(columns.capacity[loser])
    smaller = copies * int(columns.gpus[winner]) < int(columns.gpus[loser])
    looser = int(columns.container[winner]) < int(columns.container[loser]) or columns.within_part[winner] < columns.within_part[loser]
    return cost < 0 or communication < 0 or spare > 0 or smaller or bool(looser) or winner < loser


def prune(instance: Instance) -> Instance:
    """Drop dominated shapes and shapes that fit nowhere, where that cannot change the answer.

    Fitting nowhere is always a reason. Dominance is one only for `cost` and `gpus`: worst-case times and served shares compare shapes
    differently, and limits on the number of replicas may need the larger shape.
    """
    columns = instance.shapes
    keep = np.ones(len(columns), dtype=bool)
    for shape in range(len(columns)):
        room = instance.pools[int(columns.pool[shape])].slots(int(columns.size[shape])) // int(columns.groups[shape])
        if room == 0 or (columns.capacity[shape] <= 0 and instance.objective in {"cost", "gpus"}):
            keep[shape] = False
    if instance.objective in {"cost", "gpus"}:
        for deployment, limits in enumerate(instance.limits):
            if limits.maximum is not None or limits.one_shape:
                continue
            own = [shape for shape in instance.of_deployment(deployment).tolist() if keep[shape]]
            by_pool: dict[int, list[int]] = {}
            for shape in own:
                by_pool.setdefault(int(columns.pool[shape]), []).append(shape)
            for together in by_pool.values():
                for shape in together:
                    if any(other != shape and keep[other] and dominated_by(instance, shape, other) for other in together):
                        keep[shape] = False
    return instance if bool(keep.all()) else instance.keep(keep)

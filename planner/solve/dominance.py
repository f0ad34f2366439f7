"""Shapes that another shape of the same deployment can always stand in for leave before the solver sees them."""

from __future__ import annotations

import numpy as np

from planner.solve.instance import BoolArray, Container, Instance


def dominated_by(instance: Instance, loser: int, winner: int, ties: bool = True) -> bool:
    """Whether copies of `winner` fit into the GPUs of one `loser`, serve as much, and cost no more (with `ties`: nor communicate more or answer slower).

    The copies use GPUs of the loser only, so no row of `occupancy`, `locality`, `billing` or `budget` can get worse; `replicas` can, so
    callers ask only where it allows any number. Of two equal shapes the first stays.
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
    communication = copies * int(columns.comm[winner]) - int(columns.comm[loser]) if ties else 0
    slower = copies * int(columns.token_time[winner]) - int(columns.token_time[loser]) if ties else 0
    if cost > 0 or communication > 0 or slower > 0:
        return False
    spare = copies * int(columns.capacity[winner]) - int(columns.capacity[loser])
    smaller = copies * int(columns.gpus[winner]) < int(columns.gpus[loser])
    looser = int(columns.container[winner]) < int(columns.container[loser]) or columns.within_part[winner] < columns.within_part[loser]
    return cost < 0 or communication < 0 or slower < 0 or spare > 0 or smaller or bool(looser) or winner < loser


def worth_keeping(instance: Instance, ties: bool = True) -> BoolArray:
    """Mask of the shapes that the answer may need: those that fit somewhere and no other dominates.

    With `ties` the mask is exact for the tie-breaking stages too, without it for the objective alone, which leaves fewer shapes. Dominance
    counts only for `cost` and `gpus`: worst-case times and served shares compare shapes differently, and limits on the number of replicas
    may need the larger shape.
    """
    columns = instance.shapes
    covers = instance.objective in {"cost", "gpus"}
    keep = np.ones(len(columns), dtype=bool)
    for shape in range(len(columns)):
        room = instance.pools[int(columns.pool[shape])].slots(int(columns.size[shape])) // int(columns.groups[shape])
        keep[shape] = room > 0 and (columns.capacity[shape] > 0 or not covers)
    if not covers:
        return keep
    for deployment, limits in enumerate(instance.limits):
        if limits.maximum is not None or limits.one_shape:
            continue
        by_pool: dict[int, list[int]] = {}
        for shape in instance.of_deployment(deployment).tolist():
            by_pool.setdefault(int(columns.pool[shape]), []).append(shape)
        for together in by_pool.values():
            for shape in together:
                if keep[shape] and any(other != shape and keep[other] and dominated_by(instance, shape, other, ties) for other in together):
                    keep[shape] = False
    return keep

"""What a replica of each shape adds to the value by which plans of equal cost are told apart: the time per token at the load's own batch.

::

    value = sum_s v_s n_s,   v_s = c_s t_s + (w_s - c_s) e_m

    c_s = min(1, q_s / L)   part of the load that a replica can carry
    w_s = a_s / A           part of the smallest fleet of its pool that carries the load

========== ================ ===============================================================
symbol     unit             meaning
========== ================ ===============================================================
t_s        s                time per token of a full replica, or of one that carries the whole load where that does not fill it
e_m        s                time per token of the shape of m that serves most per money, and what that falls for room of one more load
q_s, L     as the load      what one replica serves, and the load of the deployment
a_s        GPUs             GPUs that a replica is billed for: its own, or its part of the nodes that ceil(L / q_s) replicas fill
A          GPUs             fewest GPUs of the pool whose replicas, of any shapes, carry the load, in whole nodes where these are billed
========== ================ ===============================================================

Plans of equal cost on one pool have as many GPUs, so that sum w_s n_s is the same for all of them. What tells them apart is sum c_s n_s (t_s - e_m): a plan without
room is worth the mean time of its full batches, weighted by the load that they carry, and every bit of room takes off what smaller batches bring. So nothing
is won by splitting a replica into others that are as full, nor by filling one large replica where two with room answer sooner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from planner.solve.instance import IntArray

MOST_MIXED = 32
"""Replicas of the shape that serves most per GPU that other shapes may stand in for in the smallest fleet."""


@dataclass(frozen=True)
class TimedShapes:
    """Columns [n] that the value depends on.

    `gpus` and `price` [1e-6 $/h] of one replica, `capacity` in units of the load, `tpot` of a full replica or of one that carries the whole load, and
    `relief`, what that falls for room of one more load, 0 where it is not known [ns].
    """

    deployment: IntArray
    pool: IntArray
    gpus: IntArray
    price: IntArray
    capacity: IntArray
    tpot: IntArray
    relief: IntArray


def token_times(shapes: TimedShapes, loads: IntArray, node_gpus: Mapping[int, int]) -> IntArray:
    """Value v_s of every shape [ns], [n], never below 0; 0 for shapes that serve nothing.

    Parameters
    ----------
    shapes
        All shapes of the menu, so that the value of a shape does not depend on which others were dropped.
    loads
        Load of every deployment in the units of `capacity`.
    node_gpus
        GPUs of a node of every pool that is billed by whole node.
    """
    values = np.zeros(len(shapes.deployment))
    for deployment, load in enumerate(loads.tolist()):
        own = np.flatnonzero((shapes.deployment == deployment) & (shapes.capacity > 0))
        if not len(own) or not load:
            continue
        parts = np.zeros(len(own))
        for pool in np.unique(shapes.pool[own]).tolist():
            here = shapes.pool[own] == pool
            parts[here] = _parts(shapes.gpus[own[here]], shapes.capacity[own[here]], load, node_gpus.get(pool, 1))
        carried = np.minimum(shapes.capacity[own] / load, 1.0)
        found = carried * shapes.tpot[own] + (parts - carried) * _exchange(shapes, own)
        # The parts of all plans add up to the same, so that this lifts all values alike.
        values[own] = found + parts * max(0.0, float((-found / parts).max()))
    answer: IntArray = np.rint(values).astype(np.int64)
    return np.maximum(answer, 0)


def _exchange(shapes: TimedShapes, own: IntArray) -> int:
    """What carrying one more load is worth [ns]: time per token and relief of the shape that serves most per money, or per GPU where some have no price."""
    known = own[shapes.relief[own] > 0]
    known = known if len(known) else own
    spent = shapes.price[known] if shapes.price[known].all() else shapes.gpus[known]
    best = known[int(np.argmax(shapes.capacity[known] / spent))]
    return int(shapes.tpot[best] + shapes.relief[best])


def _parts(gpus: IntArray, capacity: IntArray, load: int, node_gpus: int) -> np.ndarray:
    """Part of the smallest fleet of one pool that a replica of each shape is [n]."""
    best: dict[int, int] = {}
    for size, serves in zip(gpus.tolist(), capacity.tolist(), strict=True):
        best[size] = max(serves, best.get(size, 0))
    fewest = -(-load // capacity)
    billed = -(-fewest * gpus // node_gpus) * node_gpus
    parts: np.ndarray = billed / fewest / (-(-smallest_fleet(best, load) // node_gpus) * node_gpus)
    return parts


def smallest_fleet(best: Mapping[int, int], load: int) -> int:
    """Fewest GPUs with which replicas carry a load, when a replica of so many GPUs serves so much.

    All but the last `MOST_MIXED` replicas are of the size that serves most per GPU; what is left is filled by every mix of sizes.
    """
    dense = max(best, key=lambda size: (best[size] / size, -size))
    repeated = max(0, load // best[dense] - MOST_MIXED)
    left = load - repeated * best[dense]
    serves = [0]
    while serves[-1] < left:
        count = len(serves)
        serves.append(max(_with_one(best, serves, count)))
    return repeated * dense + len(serves) - 1


def _with_one(best: Mapping[int, int], serves: list[int], count: int) -> Iterable[int]:
    """What so many GPUs serve with a last replica of every size; no more than one GPU less where none fits."""
    yield serves[count - 1]
    yield from (serves[count - size] + most for size, most in best.items() if size <= count)

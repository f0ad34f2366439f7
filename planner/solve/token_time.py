"""What a replica of each shape adds to the value by which plans of equal cost are told apart: the time per token at the load's own batch.

::

    value = sum_s v_s n_s,   v_s = c_s t_s + (w_s - c_s) e_m

    c_s = min(1, q_s / L)   part of the load that a replica can carry
    w_s = a_s / A           part of the cheapest cover of the load that a replica costs

========== ================ ===============================================================
symbol     unit             meaning
========== ================ ===============================================================
t_s        s                time per token of a full replica, or of one that carries the whole load where that does not fill it
e_m        s                time per token of the shape of m that serves most per money, and what that falls for room of one more load
q_s, L     as the load      what one replica serves, and the load of the deployment
a_s        1e-6 $/h         what a replica costs; where nodes are billed whole, its part of the nodes that ceil(L / q_s) replicas fill
A          1e-6 $/h         least a_s / c_s of the deployment's shapes, on any pool
========== ================ ===============================================================

Plans of equal cost have the same sum w_s n_s, whatever A is and whatever GPUs they are on. What tells them apart is sum c_s n_s (t_s - e_m): a plan without room is worth
the mean time of its full batches, weighted by the load that they carry, and every bit of room takes off what smaller batches bring. So nothing is won by splitting a replica
into others that are as full, nor by filling one large replica where two with room answer sooner. Where GPUs are what is to be few, or some have no price, GPUs stand in for money.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from planner.solve.instance import IntArray


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


def token_times(shapes: TimedShapes, loads: IntArray, node_gpus: Mapping[int, int], *, by_gpus: bool = False) -> IntArray:
    """Value v_s of every shape [ns], [n], never below 0; 0 for shapes that serve nothing.

    Parameters
    ----------
    shapes
        All shapes of the menu, so that the value of a shape does not depend on which others were dropped.
    loads
        Load of every deployment in the units of `capacity`.
    node_gpus
        GPUs of a node of every pool that is billed by whole node.
    by_gpus
        Plans are compared that have as many GPUs, not that cost the same.
    """
    values = np.zeros(len(shapes.deployment))
    whole = np.array([node_gpus.get(pool, 1) for pool in shapes.pool.tolist()], dtype=np.int64)
    for deployment, load in enumerate(loads.tolist()):
        own = np.flatnonzero((shapes.deployment == deployment) & (shapes.capacity > 0))
        if not len(own) or not load:
            continue
        gpus, capacity = shapes.gpus[own], shapes.capacity[own]
        spent = gpus if by_gpus or not shapes.price[own].all() else shapes.price[own]
        fewest = -(-load // capacity)
        billed = spent * (-(-fewest * gpus // whole[own]) * whole[own]) / (fewest * gpus)
        carried = np.minimum(capacity / load, 1.0)
        parts = billed / float((billed / carried).min())
        found = carried * shapes.tpot[own] + (parts - carried) * _exchange(shapes, own, spent)
        # The parts of all plans add up to the same, so that this lifts all values alike.
        values[own] = found + parts * max(0.0, float((-found / parts).max()))
    answer: IntArray = np.rint(values).astype(np.int64)
    return np.maximum(answer, 0)


def _exchange(shapes: TimedShapes, own: IntArray, spent: IntArray) -> int:
    """What carrying one more load is worth [ns]: time per token and relief of the shape that serves most for what is spent on it."""
    known = np.flatnonzero(shapes.relief[own] > 0)
    known = known if len(known) else np.arange(len(own))
    best = own[known[int(np.argmax(shapes.capacity[own[known]] / spent[known]))]]
    return int(shapes.tpot[best] + shapes.relief[best])

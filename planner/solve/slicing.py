"""Loads in buckets as integers: what a slice of a bucket takes of a replica of every shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from planner.plan.shape import Shape
from planner.problem.workload import FINE_SLICES
from planner.solve.buckets import NOT_SERVED, Slicing
from planner.solve.instance import IntArray
from planner.solve.scaling import EXACT_LIMIT, SHARE_UNITS, TIME_UNITS, ceil_units

if TYPE_CHECKING:
    from planner.problem.documents import Deployment, Problem

REPLICA_UNITS = 10**9
"""Integer units of the room of one replica, unless the sums would grow too large."""


@dataclass(frozen=True)
class Sliced:
    """Columns and buckets of an instance; None and empty where no load is in buckets."""

    use: IntArray | None = None
    tpot: IntArray | None = None
    slicing: tuple[Slicing | None, ...] = ()


def read_slicing(problem: Problem, shapes: Sequence[Shape], loads: Sequence[float], scales: Sequence[int]) -> Sliced:
    """Write the buckets of a problem in integers: what a slice takes rounded up, so that no replica is ever overfull.

    Parameters
    ----------
    problem
        The question, with the buckets of its workloads.
    shapes
        The menu; a shape of a deployment with buckets has one part per bucket.
    loads, scales
        Load of every deployment in its unit, and the integer units of one such unit.
    """
    most = max((len(deployment.workload.buckets or ()) for deployment in problem.deployments), default=0)
    if not most:
        return Sliced()
    use = np.full((len(shapes), most), NOT_SERVED, dtype=np.int64)
    tpot = np.zeros((len(shapes), most), dtype=np.int64)
    slicing: list[Slicing | None] = []
    for number, deployment in enumerate(problem.deployments):
        own = [row for row, shape in enumerate(shapes) if shape.deployment == number]
        load = Fraction(repr(float(loads[number])))
        found = _slicing(deployment, load, scales[number], [shapes[row] for row in own])
        slicing.append(found)
        for row in own if found is not None else ():
            for part in shapes[row].parts:
                if part is not None and found is not None:
                    use[row, part.bucket] = math.ceil(found.unit * _taken(deployment, load, part) / found.slices)
                    tpot[row, part.bucket] = round(part.times.tpot * TIME_UNITS)
    return Sliced(use, tpot, tuple(slicing))


def _taken(deployment: Deployment, load: Fraction, part: Shape) -> Fraction:
    """Replicas that the whole of a bucket takes when they serve nothing else."""
    return load * (deployment.workload.buckets or ())[part.bucket].part / Fraction(repr(part.capacity))


def _slicing(deployment: Deployment, load: Fraction, scale: int, shapes: Sequence[Shape]) -> Slicing | None:
    buckets = deployment.workload.buckets
    if not buckets:
        return None
    slices = deployment.workload.slices or FINE_SLICES
    taken = [[_taken(deployment, load, part) for part in shape.parts if part is not None] for shape in shapes]
    # A shape takes at most all of every bucket; sums of that many slices stay below what doubles tell apart.
    worst = 1 + max((sum(own, Fraction(0)) for own in taken), default=Fraction(0))
    most = math.floor(EXACT_LIMIT / (worst * max(1, len(shapes))))
    unit = REPLICA_UNITS
    while unit > 1 and unit > most:
        unit //= 10
    # Figures as people measure them are simple: where all parts of a replica are whole in some unit, nothing is rounded.
    exact = slices
    for part in (part for own in taken for part in own):
        exact = math.lcm(exact, slices * part.denominator)
        if exact > most:
            break
    return Slicing(
        slices=slices,
        unit=exact if exact <= most else unit,
        shares=tuple(round(bucket.part * SHARE_UNITS) for bucket in buckets),
        loads=tuple(ceil_units(float(load * bucket.part), scale) for bucket in buckets),
    )

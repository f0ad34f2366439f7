"""Times of replicas that carry a whole load without being full, by which plans of equal cost are told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from planner.candidates.asking import Asked, Search, Searched, answered
from planner.candidates.columns import layout_columns
from planner.candidates.degrees import Layout
from planner.candidates.settings import PoolSetting
from planner.cost.setting import IntArray, ShapeArrays
from planner.plan.shape import Degrees, Shape

Key = tuple[Degrees, str, str, int, int]


class Carried(NamedTuple):
    """Shapes of one deployment on one pool and the load they are to carry, which is not in buckets.

    `context` is the setting the shapes were evaluated in, `grid` holds their layouts among others, `load` is that of the deployment in units of the shapes' capacity.
    """

    context: PoolSetting
    grid: Sequence[Layout]
    shapes: Sequence[Shape]
    load: float


def with_load_times(carried: Sequence[Carried]) -> list[list[Shape]]:
    """Shapes of every entry, with `load_tpot` where one replica carries the whole load and is not full."""
    found = [list(one.shapes) for one in carried]
    asked: list[tuple[int, list[int]]] = []
    searches: list[Searched[list[float]]] = []
    for number, one in enumerate(carried):
        batches = {row: batch for row, shape in enumerate(one.shapes) if (batch := alone_batch(shape, one.load)) < shape.batch}
        if batches:
            asked.append((number, list(batches)))
            columns = _columns(one, [one.shapes[row] for row in batches])
            searches.append(Searched(one.context.setting, columns, partial(_token_times, np.array([*batches.values()], dtype=np.int64))))
    for (number, rows), told in zip(asked, answered(searches), strict=True):
        for row, tpot in zip(rows, told, strict=True):
            shape = found[number][row]
            # Figures that a user measured may say otherwise than the model does.
            found[number][row] = replace(shape, load_tpot=min(tpot, shape.times.tpot))
    return found


def _token_times(batch: IntArray, _: IntArray) -> Search[list[float]]:
    """Time per token [s] of all rows, each at its batch."""
    told = yield Asked(np.arange(batch.size, dtype=np.int64), batch, against_one=False)
    times: list[float] = told.tpot.tolist()
    return times


def alone_batch(shape: Shape, load: float) -> int:
    """Sequences that one replica holds when it carries the whole load, or is full.

    A rate keeps as many sequences in a replica as Little's law says, rate times time. The time is that of the full batch, so that the answer is never too
    small. Every data-parallel rank has at least one sequence.
    """
    held = math.ceil(shape.batch * min(1.0, load / shape.capacity))
    return min(shape.batch, max(held, shape.degrees.data_parallel, 1))


def _columns(carried: Carried, shapes: Sequence[Shape]) -> ShapeArrays:
    """Layouts of some of the shapes as columns."""
    levels = carried.context.pool.levels
    known: dict[Key, Layout] = {
        (layout.degrees, levels[layout.replica_level], levels[layout.group_level], layout.groups, layout.group_size): layout
        for layout in carried.grid
    }
    return layout_columns([known[shape.degrees, shape.locality, shape.group_level, shape.groups, shape.group_size] for shape in shapes])

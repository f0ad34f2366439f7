"""Times of replicas that carry a whole load without being full, by which plans of equal cost are told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.candidates.columns import layout_columns
from planner.candidates.degrees import Layout
from planner.candidates.settings import PoolSetting
from planner.cost.evaluation import prepared
from planner.plan.shape import Degrees, Shape

Key = tuple[Degrees, str, str, int, int]


def with_load_times(context: PoolSetting, grid: Sequence[Layout], shapes: Sequence[Shape], load: float) -> list[Shape]:
    """The shapes of one setting, with `load_tpot` where one replica carries the whole load and is not full.

    Parameters
    ----------
    context
        Setting that the shapes were evaluated in.
    grid
        Layouts, among them those of the shapes.
    shapes
        Shapes of one deployment on one pool whose load is not in buckets.
    load
        Load of the deployment in units of the shapes' capacity.
    """
    asked = {row: batch for row, shape in enumerate(shapes) if (batch := alone_batch(shape, load)) < shape.batch}
    if not asked:
        return list(shapes)
    found = list(shapes)
    for row, tpot in zip(asked, _times(context, grid, [shapes[row] for row in asked], [*asked.values()]), strict=True):
        # Figures that a user measured may say otherwise than the model does.
        found[row] = replace(shapes[row], load_tpot=min(tpot, shapes[row].times.tpot))
    return found


def alone_batch(shape: Shape, load: float) -> int:
    """Sequences that one replica holds when it carries the whole load, or is full.

    A rate keeps as many sequences in a replica as Little's law says, rate times time. The time is that of the full batch, so that the answer is never too
    small. Every data-parallel rank has at least one sequence.
    """
    held = math.ceil(shape.batch * min(1.0, load / shape.capacity))
    return min(shape.batch, max(held, shape.degrees.data_parallel, 1))


def _times(context: PoolSetting, grid: Sequence[Layout], shapes: Sequence[Shape], batches: Sequence[int]) -> list[float]:
    """Time per token [s] of shapes at other batches than their own."""
    levels = context.pool.levels
    known: dict[Key, Layout] = {
        (layout.degrees, levels[layout.replica_level], levels[layout.group_level], layout.groups, layout.group_size): layout
        for layout in grid
    }
    columns = layout_columns([known[shape.degrees, shape.locality, shape.group_level, shape.groups, shape.group_size] for shape in shapes])
    rows = np.arange(len(shapes), dtype=np.int64)
    times: list[float] = prepared(context.setting, columns).at(rows, np.array(batches, dtype=np.int64), against_one=False).tpot.tolist()
    return times

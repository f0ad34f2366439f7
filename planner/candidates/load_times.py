"""Times at the batch that the load makes, by which plans of equal cost are told apart."""

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
    """The shapes of one setting with their `load_tpot`, and the one that serves most per GPU with its `relief`; one evaluation for all of them.

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
    if not shapes:
        return []
    asked = {row: alone_batch(shape, load) for row, shape in enumerate(shapes)}
    asked = {row: batch for row, batch in asked.items() if batch < shapes[row].batch}
    # Of equals the largest batch, then the fewest GPUs: shapes with small batches, and far ones, tell less of the others.
    densest = max(
        range(len(shapes)),
        key=lambda row: (shapes[row].capacity / shapes[row].degrees.gpus, shapes[row].batch, -shapes[row].degrees.gpus, -row),
    )
    full = asked.get(densest, shapes[densest].batch)
    part = max(-(-2 * full // 3), shapes[densest].degrees.data_parallel)
    rows, batches = [*asked], [*asked.values()]
    if part < full:
        rows, batches = [*rows, densest], [*batches, part]
    if not rows:
        return list(shapes)
    times = _times(context, grid, [shapes[row] for row in rows], batches)
    found = list(shapes)
    for row, tpot in zip(asked, times, strict=False):
        # Figures that a user measured may say otherwise than the model does.
        found[row] = replace(shapes[row], load_tpot=min(tpot, shapes[row].times.tpot))
    if part < full:
        at_full = found[densest].load_tpot or found[densest].times.tpot
        found[densest] = replace(found[densest], relief=max(0.0, at_full - times[-1]) / (full / part - 1.0))
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

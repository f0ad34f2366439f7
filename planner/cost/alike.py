"""Shapes whose times are the same at every batch: those that differ only in levels which nothing crosses, or which are joined alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.cost.distinct import distinct_rows
from planner.cost.setting import IntArray, Setting, ShapeArrays


def alike(setting: Setting, shapes: ShapeArrays) -> tuple[IntArray, IntArray]:
    """One row for every sort of shapes [k], and which sort each shape is of [n]; batches do not tell them apart.

    A leaf and a spine without oversubscription carry the same messages in the same time, and a replica of one stage sends nothing between stages.
    """
    level = _joined_alike(setting)
    sharded, piped = shapes.tensor_parallel > 1, shapes.pipeline_parallel > 1
    spread = (shapes.data_parallel > 1) | (shapes.expert_parallel > 1)
    return distinct_rows(
        shapes.tensor_parallel,
        shapes.pipeline_parallel,
        shapes.expert_parallel,
        shapes.data_parallel,
        shapes.stage_scopes,
        np.where(sharded, level[shapes.tp_level], -1),
        np.where(spread, level[shapes.stage_level], -1),
        np.where(piped, level[shapes.replica_level], -1),
    )


def _joined_alike(setting: Setting) -> IntArray:
    """First level that is joined like each one, its name and the number of links apart."""
    paths = [replace(path, level="", hops=0) for path in setting.paths]
    return np.array([paths.index(path) for path in paths], dtype=np.int64)

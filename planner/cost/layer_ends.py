"""Where stages end under a limit of their load, nearest to equal shares, for many rows of layers at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.cost.layer_balance import last_within

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def nearest_ends(prefix: FloatArray, stages: IntArray, high: FloatArray) -> IntArray:
    """Of the splits whose fullest stage holds at most `high` [n], ends of the one whose boundaries lie nearest to equal shares.

    Parameters
    ----------
    prefix
        Load of the layers before each boundary, from 0 to the whole, shape [n, layers + 1].
    stages
        Stages of each row, shape [n].
    high
        What the fullest stage of each row may hold, shape [n].

    Returns
    -------
    array of int
        Boundary at the end of every stage, shape [n, most stages]; all layers from the last stage of a row on.
    """
    order = np.argsort(-stages, kind="stable")
    found = np.empty((len(stages), int(stages.max(initial=1))), dtype=np.int64)
    found[order] = _nearest(prefix[order], stages[order], high[order] * (1.0 + 1e-12))
    return found


def _nearest(prefix: FloatArray, stages: IntArray, limit: FloatArray) -> IntArray:
    """The ends themselves, for rows with falling numbers of stages."""
    layers = prefix.shape[1] - 1
    most = int(stages.max(initial=1))
    index, whole = np.arange(len(stages)), prefix[:, -1]
    latest, earliest = _latest(prefix, stages, limit), _earliest(prefix, stages, limit)
    ends = np.full((len(stages), most), layers, dtype=np.int64)
    start = np.zeros(len(stages), dtype=np.int64)
    for stage in range(most - 1):
        rows = slice(np.count_nonzero(stages > stage + 1))
        target = whole[rows] * (stage + 1) / stages[rows]
        nearest = last_within(prefix[rows], target)
        after = prefix[index[rows], np.minimum(nearest + 1, layers)]
        nearest += (nearest < layers) & (after - target < target - prefix[index[rows], nearest])
        begin = start[rows]
        reach = last_within(prefix[rows], prefix[index[rows], begin] + limit[rows])
        wished = np.maximum(np.maximum(nearest, earliest[rows, stage]), begin + 1)
        start[rows] = np.minimum(np.minimum(wished, latest[rows, stage]), np.maximum(reach, begin + 1))
        ends[rows, stage] = start[rows]
    return ends


def _latest(prefix: FloatArray, stages: IntArray, limit: FloatArray) -> IntArray:
    """Fill every stage from the left up to `limit`, one layer kept for each stage to come.

    Where the layers do not fit, which only rounding can bring about, every stage ends as late as the number of stages allows.
    """
    layers = prefix.shape[1] - 1
    index, slack = np.arange(len(stages)), limit * (1.0 + 1e-13)
    ends = np.full((len(stages), int(stages.max(initial=1))), layers, dtype=np.int64)
    start = np.zeros(len(stages), dtype=np.int64)
    fits = np.ones(len(stages), dtype=bool)
    for stage in range(ends.shape[1]):
        rows = slice(np.count_nonzero(stages > stage))
        begin = start[rows]
        end = np.minimum(last_within(prefix[rows], prefix[index[rows], begin] + slack[rows]), layers - (stages[rows] - 1 - stage))
        fits[rows] &= end > begin
        ends[rows, stage] = start[rows] = end
    failed = np.flatnonzero(~(fits & (start == layers)))
    ends[failed] = np.minimum(layers - stages[failed, None] + 1 + np.arange(ends.shape[1]), layers)
    return ends


def _earliest(prefix: FloatArray, stages: IntArray, limit: FloatArray) -> IntArray:
    """Fill every stage from the right: the smallest end each stage may have so that the rest still fits."""
    layers = prefix.shape[1] - 1
    index = np.arange(len(stages))
    ends = np.full((len(stages), int(stages.max(initial=1))), layers, dtype=np.int64)
    for stage in range(ends.shape[1] - 1, 0, -1):
        rows = slice(np.count_nonzero(stages > stage))
        end = ends[rows, stage]
        # Boundaries from which the layers up to the end are too many; what is left between two of them only shrinks.
        first = np.argmin(prefix[index[rows], end][:, None] - prefix[rows] > limit[rows, None], axis=1)
        ends[rows, stage - 1] = np.clip(first, stage, np.maximum(end - 1, stage))
    return ends

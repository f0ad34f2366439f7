"""The limit under which layers fit into stages, searched for many rows of layers at once."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# The fullest stage is found to this share of the whole load.
TOLERANCE: Final = 1e-7
# What rounding may do to a limit, with room to spare.
ROUNDING: Final = 1e-9


def least_limits(prefix: FloatArray, stages: IntArray, fullest_layer: FloatArray) -> FloatArray:
    """Least load that the fullest stage of each row must take, to within `TOLERANCE` of the row's whole load.

    Bisection over the limit, the layers filled in from the left up to it. A limit at which they do not fit also tells the next one at which some stage
    could take a layer more; what lies below is known not to fit either and is not tried.

    Parameters
    ----------
    prefix
        Load of the layers before each boundary, from 0 to the whole, shape [n, layers + 1].
    stages
        Stages of each row, at least 2 and at most the number of layers, shape [n].
    fullest_layer
        The largest load of a layer, shape [n].
    """
    order = np.argsort(-stages, kind="stable")
    found = np.empty(len(stages))
    found[order] = _searched(prefix[order], stages[order], fullest_layer[order])
    return found


def _searched(prefix: FloatArray, stages: IntArray, fullest_layer: FloatArray) -> FloatArray:
    """The search itself, for rows with falling numbers of stages."""
    whole = prefix[:, -1]
    # Nothing below `low` fits; `next_up` is the least limit that may fit.
    low = np.maximum(fullest_layer, whole / stages)
    next_up, high = low.copy(), whole.copy()
    number = 0
    while (rows := np.flatnonzero(high - low > TOLERANCE * whole)).size:
        # Of layers almost alike the first or second limit at which a stage takes a layer more is the answer, of others halving the interval finds it.
        limit = 0.5 * (low[rows] + high[rows]) if number % 2 else np.minimum(next_up[rows], high[rows])
        fits, reached, following = _filled(prefix[rows], stages[rows], limit)
        fitting, failing = rows[fits], rows[~fits]
        high[fitting] = np.minimum(reached, limit)[fits]
        if not number % 2:
            low[fitting] = np.maximum(low[fitting], limit[fits] * (1.0 - ROUNDING))
        next_up[failing] = np.maximum(following[~fits], limit[~fits])
        low[failing] = np.maximum(limit[~fits], following[~fits] * (1.0 - ROUNDING))
        number += 1
    return high


def _filled(prefix: FloatArray, stages: IntArray, limit: FloatArray) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
    """Fill stages from the left up to a limit, a layer kept for each stage to come: whether all layers fit, the fullest stage, and the next limit to try.

    The rows come with falling numbers of stages, so that those which still have one are the first ones.
    """
    layers = prefix.shape[1] - 1
    index = np.arange(len(stages))
    start = np.zeros(len(stages), dtype=np.int64)
    reached, following = np.zeros(len(stages)), prefix[:, -1].copy()
    fits = np.ones(len(stages), dtype=bool)
    slack = limit * (1.0 + 1e-13)
    for stage in range(int(stages.max())):
        rows = slice(np.count_nonzero(stages > stage))
        begin = start[rows]
        before = prefix[index[rows], begin]
        most = layers - (stages[rows] - 1 - stage)
        end = np.minimum(last_within(prefix[rows], before + slack[rows]), most)
        more = prefix[index[rows], np.minimum(end + 1, layers)] - before
        following[rows] = np.where(end < most, np.minimum(following[rows], more), following[rows])
        reached[rows] = np.maximum(reached[rows], prefix[index[rows], end] - before)
        fits[rows] &= end > begin
        start[rows] = end
    return fits & (start == layers), reached, following


def last_within(prefix: FloatArray, most: FloatArray) -> IntArray:
    """Last boundary of each row whose prefix is at most `most` [n]; prefixes do not fall and begin with at most that."""
    beyond = prefix > most[:, None]
    beyond[:, 0] = False
    found = np.argmax(beyond, axis=1)
    return np.asarray(np.where(found > 0, found, prefix.shape[1]) - 1, dtype=np.int64)

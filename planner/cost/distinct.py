"""Different values of a column, without `numpy.unique`: that loads `numpy.ma`, and looks for masks and NaNs in every small column it is asked about."""

from __future__ import annotations

import numpy as np

from planner.cost.setting import IntArray

# Values that lie closer together than this many and one for each row are found in a table of all of them, others by sorting.
MOST_COUNTED = 4096


def distinct(values: IntArray) -> tuple[IntArray, IntArray]:
    """Different values in rising order [k], and which of them each row has [n]."""
    least = int(values.min(initial=0))
    width = int(values.max(initial=0)) - least + 1
    if width <= MOST_COUNTED + values.size:
        present = np.zeros(width, dtype=bool)
        present[values - least] = True
        return np.flatnonzero(present) + least, (np.cumsum(present) - 1)[values - least]
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    first = np.ones(values.size, dtype=bool)
    np.not_equal(ranked[1:], ranked[:-1], out=first[1:])
    where = np.empty(values.size, dtype=np.int64)
    where[order] = np.cumsum(first) - 1
    return ranked[first], where


def distinct_rows(*columns: IntArray) -> tuple[IntArray, IntArray]:
    """Different rows of columns of equal length: one row number for each [k], and which of them every row is like [n]."""
    where = np.zeros(columns[0].size, dtype=np.int64)
    for column in columns:
        # Rows are numbered anew after each column, so that nothing overflows whatever the columns hold.
        values, number = distinct(column)
        where = distinct(where * values.size + number)[1]
    sample = np.empty(int(where.max(initial=-1)) + 1, dtype=np.int64)
    sample[where[::-1]] = np.arange(where.size)[::-1]
    return sample, where

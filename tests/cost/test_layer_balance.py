"""The limit that layers need, found for many rows at once as one row at a time finds it; and different rows of columns."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost.distinct import distinct, distinct_rows
from planner.cost.layer_balance import TOLERANCE, least_limits
from planner.cost.layer_ends import nearest_ends
from planner.cost.layer_split import balanced_partition, balanced_rows

LOADS = st.lists(st.one_of(st.just(1.0), st.sampled_from([0.0, 1.0 + 1e-9, 2.5, 1e6]), st.floats(0.0, 50.0)), min_size=6, max_size=24)


def filled(loads, stages, limit):
    """Whether the layers fit into the stages up to a limit."""
    load, used = 0.0, 1
    for one in loads:
        if load + one > limit * (1.0 + 1e-12):
            load, used = 0.0, used + 1
        load += one
    return used <= stages and max(loads) <= limit * (1.0 + 1e-12)


def nearest(prefix, stages, high):
    """Ends nearest to equal shares under a limit, one row and one boundary after the other."""
    layers, limit = len(prefix) - 1, high * (1.0 + 1e-12)
    latest, start = [], 0
    for stage in range(stages):
        end = min(bisect_right(prefix, prefix[start] + limit * (1.0 + 1e-13)) - 1, layers - (stages - 1 - stage))
        if end <= start:
            break
        latest.append(end)
        start = end
    if start < layers:
        latest = [*range(layers - stages + 1, layers + 1)]
    earliest = [layers] * stages
    for stage in range(stages - 1, 0, -1):
        end = earliest[stage]
        start = end - 1
        while start > stage and prefix[end] - prefix[start - 1] <= limit:
            start -= 1
        earliest[stage - 1] = max(start, stage)
    ends, start = [], 0
    for stage in range(stages - 1):
        target = prefix[-1] * (stage + 1) / stages
        near = bisect_right(prefix, target) - 1
        if near < layers and prefix[near + 1] - target < target - prefix[near]:
            near += 1
        reach = bisect_right(prefix, prefix[start] + limit) - 1
        start = min(max(near, earliest[stage], start + 1), latest[stage], max(reach, start + 1))
        ends.append(start)
    return [*ends, layers]


def one_row(loads, stages):
    """Plain bisection, every limit tried."""
    prefix = [0.0, *accumulate(loads)]
    low, high = max(*loads, prefix[-1] / stages), prefix[-1]
    while high - low > TOLERANCE * prefix[-1]:
        limit = 0.5 * (low + high)
        start, reached = 0, 0.0
        for stage in range(stages):
            end = min(bisect_right(prefix, prefix[start] + limit * (1.0 + 1e-13)) - 1, len(loads) - (stages - 1 - stage))
            reached, start = max(reached, prefix[end] - prefix[start]), end
        if start == len(loads):
            high = min(reached, limit)
        else:
            low = limit
    return high


@settings(max_examples=60)
@given(loads=LOADS, stages=st.lists(st.integers(2, 6), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_rows_searched_together_end_at_the_least_limits_of_each_alone(loads, stages, seed):
    generator = np.random.default_rng(seed)
    rows = np.array([generator.permutation(loads) for _ in stages])
    prefix = np.concatenate((np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)), axis=1)
    found = least_limits(prefix, np.array(stages), rows.max(axis=1))
    for limit, row, count in zip(found.tolist(), rows, stages, strict=True):
        assert limit == pytest.approx(one_row(row.tolist(), count), rel=1e-12, abs=TOLERANCE * row.sum())
        assert filled(row.tolist(), count, limit)
        assert not filled(row.tolist(), count, limit - 2.0 * TOLERANCE * row.sum())


@settings(max_examples=100)
@given(loads=LOADS, stages=st.lists(st.integers(1, 6), min_size=1, max_size=5), seed=st.integers(0, 99), scale=st.floats(0.7, 2.0))
def test_stages_of_rows_end_where_those_of_each_alone_do(loads, stages, seed, scale):
    """Under the least limit, and under those that leave room or cannot be kept."""
    generator = np.random.default_rng(seed)
    rows = np.array([generator.permutation(loads) for _ in stages])
    prefix = np.concatenate((np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)), axis=1)
    counts = np.array(stages)
    for factor in (1.0, scale):
        limits = least_limits(prefix, counts, rows.max(axis=1)) * factor
        found = nearest_ends(prefix, counts, limits).tolist()
        for ends, row, count, limit in zip(found, prefix.tolist(), stages, limits.tolist(), strict=True):
            assert ends[:count] == nearest(row, count, limit)
            assert set(ends[count:]) <= {len(loads)}


@settings(max_examples=60)
@given(loads=LOADS, stages=st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_rows_cut_together_are_cut_as_each_alone(loads, stages):
    rows, ends = np.array([loads] * len(stages)), np.linspace(0.0, 9.0, len(stages))
    assert balanced_rows(rows, stages, ends, -ends) == [
        balanced_partition(loads, count, end, -end) for count, end in zip(stages, ends.tolist(), strict=True)
    ]
    assert rows.tolist() == [loads] * len(stages)


def test_one_row_with_too_many_stages_is_refused():
    with pytest.raises(ValueError, match="4 layers cannot be cut into 5 stages"):
        balanced_rows(np.ones((2, 4)), [4, 5], np.zeros(2), np.zeros(2))


@given(values=st.lists(st.integers(-5, 5), max_size=30))
def test_different_values_are_those_of_numpy(values):
    column = np.array(values, dtype=np.int64)
    found, where = distinct(column)
    expected, inverse = np.unique(column, return_inverse=True)
    assert found.tolist() == expected.tolist()
    assert where.tolist() == inverse.tolist()


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**62), st.integers(0, 1)), max_size=30))
def test_different_rows_stand_for_all_rows(rows):
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    sample, where = distinct_rows(*columns)
    assert len({rows[index] for index in sample}) == len(sample) == len(set(rows))
    assert [rows[sample[place]] for place in where] == rows


def test_a_column_may_be_named_twice():
    same, other = np.array([1, 1, 2, 2]), np.array([5, 6, 5, 5])
    assert distinct_rows(same, other, same)[1].tolist() == [0, 1, 2, 2]

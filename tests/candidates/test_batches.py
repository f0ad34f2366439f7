"""Laws of the batch search: it finds exactly the largest batch that meets the targets."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.batches import Targets, efficient_batch, largest_batch, select
from planner.cost.setting import ShapeArrays


def shapes_of(count: int) -> ShapeArrays:
    """Shapes told apart by their tensor degree, which carries the row number."""
    ones = np.ones(count, dtype=np.int64)
    return ShapeArrays(np.arange(count), ones, ones, ones, ones, ones, ones, ones, ones)


def steps(limits: list[int]):
    """Times that meet a TPOT of 1 s up to a batch of `limits[row]` and miss it beyond."""
    bounds = np.asarray(limits)

    def evaluate(shapes: ShapeArrays):
        late = shapes.batch > bounds[shapes.tensor_parallel]
        return SimpleNamespace(tpot=np.where(late, 2.0, 0.5), ttft=np.zeros(late.size), efficiency=np.where(late, 0.0, 1.0))

    return evaluate


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), min_size=1, max_size=20))
def test_the_largest_batch_is_the_smaller_of_memory_and_latency(rows):
    limits = [limit for limit, _ in rows]
    most = np.array([room for _, room in rows], dtype=np.int64)
    found = largest_batch(steps(limits), shapes_of(len(rows)), most, Targets(tpot=1.0))
    assert found.tolist() == [min(limit, room) for limit, room in rows]


@pytest.mark.parametrize(("limit", "expected"), [(100, 100), (60, 50), (1, 1), (0, 0)])
def test_an_inefficient_batch_is_halved_until_it_is_efficient(limit, expected):
    found = efficient_batch(steps([limit]), shapes_of(1), np.array([100]), Targets(min_efficiency=0.5))
    assert found.tolist() == [expected]


def test_rows_are_selected_together():
    picked = select(shapes_of(4), np.array([3, 1]))
    assert picked.tensor_parallel.tolist() == [3, 1]

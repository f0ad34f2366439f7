"""Laws of the batch search: it finds exactly the largest batch that meets the targets, and asks little for it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.batches import Targets, efficient_batch, largest_batch


def steps(limits: list[int]):
    """Times that meet a TPOT of 1 s up to a batch of `limits[row]` and miss it beyond."""
    bounds = np.asarray(limits)

    def judge(rows: np.ndarray, batch: np.ndarray):
        late = batch > bounds[rows]
        return SimpleNamespace(tpot=np.where(late, 2.0, 0.5), ttft=np.zeros(late.size), efficiency=np.where(late, 0.0, 1.0))

    return judge


def curves(starts: list[float], powers: list[float], asked: list[np.ndarray]):
    """Times that grow like a power of the batch; what is asked is noted in `asked`."""

    def judge(rows: np.ndarray, batch: np.ndarray):
        asked.append(np.stack((rows, batch)))
        tpot = np.asarray(starts)[rows] * batch ** np.asarray(powers)[rows]
        return SimpleNamespace(tpot=tpot, ttft=np.sqrt(tpot))

    return judge


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), min_size=1, max_size=20))
def test_the_largest_batch_is_the_smaller_of_memory_and_latency(rows):
    limits = [limit for limit, _ in rows]
    most = np.array([room for _, room in rows], dtype=np.int64)
    found = largest_batch(steps(limits), most, Targets(tpot=1.0))
    assert found.tolist() == [min(limit, room) for limit, room in rows]


@given(
    st.lists(st.tuples(st.floats(1e-4, 2.0), st.floats(0.05, 3.0), st.integers(1, 4000)), min_size=1, max_size=12),
    st.floats(0.1, 30.0),
    st.floats(0.1, 30.0),
)
def test_the_batch_found_meets_both_targets_and_the_next_one_does_not(rows, tpot, ttft):
    starts, powers, room = (list(column) for column in zip(*rows, strict=True))
    judge, most = curves(starts, powers, []), np.array(room, dtype=np.int64)
    found = largest_batch(judge, most, Targets(tpot=tpot, ttft=ttft))

    def met(batch: np.ndarray):
        times = judge(np.arange(batch.size), batch)
        return (times.tpot <= tpot) & (times.ttft <= ttft)

    assert (found <= most).all()
    assert met(np.maximum(found, 1))[found > 0].all()
    assert not met(found + 1)[found < most].any()


@given(st.lists(st.tuples(st.floats(1e-3, 2.0), st.floats(0.3, 2.0), st.integers(1, 4000)), min_size=2, max_size=12))
def test_what_is_asked_of_a_row_does_not_depend_on_the_others(rows):
    starts, powers, room = (list(column) for column in zip(*rows, strict=True))
    together: list[np.ndarray] = []
    largest_batch(curves(starts, powers, together), np.array(room), Targets(tpot=1.0))
    for row in range(len(rows)):
        alone: list[np.ndarray] = []
        largest_batch(curves([starts[row]], [powers[row]], alone), np.array([room[row]]), Targets(tpot=1.0))
        mine = np.concatenate(together, axis=1)
        assert mine[1, mine[0] == row].tolist() == np.concatenate(alone, axis=1)[1].tolist()


def test_times_that_grow_evenly_are_asked_for_few_batches():
    asked: list[np.ndarray] = []
    found = largest_batch(curves([0.01] * 50, [0.8] * 50, asked), np.arange(200, 250), Targets(tpot=0.4))
    assert set(found.tolist()) == {100}
    assert sum(part.shape[1] for part in asked) <= 50 * 18


def test_without_targets_nothing_is_asked():
    asked: list[np.ndarray] = []
    assert largest_batch(curves([1.0, 1.0], [1.0, 1.0], asked), np.array([0, 700]), Targets()).tolist() == [0, 700]
    assert not asked


@pytest.mark.parametrize(("limit", "expected"), [(100, 100), (60, 50), (1, 1), (0, 0)])
def test_an_inefficient_batch_is_halved_until_it_is_efficient(limit, expected):
    found = efficient_batch(steps([limit]), np.array([100]), Targets(min_efficiency=0.5))
    assert found.tolist() == [expected]

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost.evaluation import evaluate
from planner.cost.serving import (
    SERVICE_VARIATION,
    crowd,
    effective_batch,
    prefill_wait_seconds,
    queueing_seconds,
    slot_wait_seconds,
)
from planner.cost.tails import tails


def test_one_slot_is_the_pollaczek_khinchine_wait():
    # M/G/1: rho / (1 - rho) x (1 + c^2) / 2 x E[service]; Sakasegawa's exponent is sqrt(4) - 1 = 1 for one slot.
    wait = queueing_seconds(0.5, np.array([1.0]), np.array([1.0]))[0]
    assert wait == pytest.approx(0.5 / 0.5 * (1.0 + SERVICE_VARIATION**2) / 2.0)


def test_many_slots_are_close_to_erlang_c():
    # M/M/10 at rho = 0.9: Erlang C gives P(wait) = 0.6687, so Wq = 0.6687 / (10 x 0.1) service times; with c = 1 the factor (1 + c^2) / 2 is 1.
    wait = queueing_seconds(9.0, np.array([10.0]), np.array([1.0]))[0] / ((1.0 + SERVICE_VARIATION**2) / 2.0)
    assert wait == pytest.approx(0.6687, rel=0.03)


@given(st.floats(0.0, 50.0), st.integers(1, 500), st.floats(1e-3, 100.0))
def test_waits_grow_with_the_rate_and_are_infinite_when_overloaded(rate, slots, service):
    waits = queueing_seconds(np.array([0.0, rate, rate * 1.1]), np.full(3, float(slots)), np.full(3, service))
    assert waits[0] == 0.0
    assert waits[2] >= waits[1] >= 0.0
    overloaded = queueing_seconds(slots / service * 1.01, np.array([float(slots)]), np.array([service]))
    assert np.isinf(overloaded[0])


def test_a_lone_prompt_waits_for_nobody():
    batch = np.array([1.0, 2.0, 65.0])
    waits = prefill_wait_seconds(batch, np.full(3, 0.02), np.full(3, 0.3), crowd(batch, 0.5, 0.5))
    assert waits[0] == 0.0
    assert waits[1] == pytest.approx(2 * 0.02 + 0.5 * 0.3)
    assert waits[2] == pytest.approx(2 * 0.02 + 0.5 * 8.0 * 0.3)


def test_sequences_beyond_the_cache_wait_for_a_slot():
    batch = effective_batch(np.array([10.0, 40.0]), np.array([16.0, 16.0]))
    np.testing.assert_array_equal(batch, [10.0, 16.0])
    np.testing.assert_allclose(slot_wait_seconds(np.array([10.0, 40.0]), batch, np.full(2, 6.0)), [0.0, 9.0])


def test_an_offered_rate_adds_its_wait_to_the_first_token(dense_model, setting_of, shapes_of):
    shapes = shapes_of((8, 1, 1, 1, 32))
    closed = evaluate(setting_of(dense_model), shapes)
    possible = closed.throughput[0] / 512.0
    some = evaluate(setting_of(dense_model, request_rate=0.95 * possible), shapes)
    more = evaluate(setting_of(dense_model, request_rate=1.05 * possible), shapes)
    assert some.tpot[0] == closed.tpot[0]
    assert closed.ttft[0] < some.ttft[0] < np.inf
    assert np.isinf(more.ttft[0])


def test_tails_are_seeded_ordered_and_centred(routed_model, setting_of, shapes_of):
    times = evaluate(setting_of(routed_model), shapes_of((8, 1, 1, 1, 32), (1, 1, 8, 8, 32)))
    drawn = tails(times, 0.05, 0.3, seed=7, draws=20000)
    again = tails(times, 0.05, 0.3, seed=7, draws=20000)
    other = tails(times, 0.05, 0.3, seed=8, draws=20000)
    np.testing.assert_array_equal(drawn.tpot, again.tpot)
    assert (drawn.tpot != other.tpot).any()
    assert (np.diff(drawn.tpot, axis=1) > 0.0).all()
    assert (np.diff(drawn.ttft, axis=1) > 0.0).all()
    np.testing.assert_allclose(drawn.tpot_at(50.0), times.tpot, rtol=0.03)


def test_whole_communication_moves_together(dense_model, setting_of, shapes_of):
    # One draw for all of a step's collectives: P99 of a log-normal factor is exp(2.326 s - s^2 / 2), not averaged away over 128 all-reduces.
    times = evaluate(setting_of(dense_model), shapes_of((8, 1, 1, 1, 64)))
    drawn = tails(times, 0.0, 0.4, seed=1, draws=200000)
    expected = times.compute[0] + times.fixed[0] + times.tp_comm[0] * np.exp(2.326 * 0.4 - 0.08)
    assert drawn.tpot_at(99.0)[0] == pytest.approx(expected, rel=0.01)


def test_no_jitter_is_the_mean_and_an_endless_queue_stays_endless(dense_model, setting_of, shapes_of):
    shapes = shapes_of((8, 1, 1, 1, 8))
    times = evaluate(setting_of(dense_model, request_rate=1e6), shapes)
    drawn = tails(times, 0.0, 0.0)
    np.testing.assert_allclose(drawn.tpot, np.repeat(times.tpot[:, None], 3, axis=1))
    assert np.isinf(drawn.ttft).all()

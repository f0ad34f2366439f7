from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.catalog.step_times import step_constants
from planner.cost.calibrated import BLOCK, evaluate_calibrated
from planner.cost.closed_loop import step_times
from planner.cost.evaluation import evaluate
from planner.cost.setting import TimesTable
from planner.diagnostics import PlannerError

COLUMNS = [name for name in TimesTable.__dataclass_fields__ if name != "algorithm"]
SHARED = {"max_examples": 60, "deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
POWERS = st.sampled_from([1, 2, 4, 8])
BATCHES = st.integers(1, 600)
LENGTHS = st.tuples(st.integers(1, 20000), st.integers(1, 4000))


def parts_sum(times):
    return times.compute + times.tp_comm + times.pp_comm + times.ep_comm + times.fixed


@given(st.lists(st.tuples(POWERS, POWERS, st.sampled_from([1, 2]), st.sampled_from([1, 2]), BATCHES), min_size=1, max_size=6), LENGTHS)
@settings(**SHARED)
def test_parts_add_up_for_every_kind_of_layer(hybrid_model, setting_of, shapes_of, rows, lengths):
    rows = [(t, p, min(e, t * dp), dp, batch) for t, p, e, dp, batch in rows]
    setting = setting_of(hybrid_model, prompt=float(lengths[0]), output=float(lengths[1]))
    times = evaluate(setting, shapes_of(*rows))
    np.testing.assert_allclose(parts_sum(times), times.tpot, rtol=1e-12)
    np.testing.assert_allclose(times.queueing + times.prefill_compute + times.prefill_comm, times.ttft, rtol=1e-12)
    for name in COLUMNS:
        column = getattr(times, name)
        assert np.isfinite(column).all(), name
        assert (column >= 0.0).all(), name


@given(POWERS, st.integers(2, 16), LENGTHS)
@settings(**SHARED)
def test_pipelines_never_lower_the_step_of_a_single_sequence(hybrid_model, setting_of, shapes_of, t, p, lengths):
    setting = setting_of(hybrid_model, prompt=float(lengths[0]), output=float(lengths[1]))
    whole, piped = evaluate(setting, shapes_of((t, 1, 1, 1, 1), (t, p, 1, 1, 1))).tpot
    assert piped >= whole


def test_pipelines_split_the_cache_of_many_sequences(dense_model, setting_of, shapes_of):
    # 200 long sequences: reading their cache takes most of the step, and every stage reads only its layers' part.
    setting = setting_of(dense_model, prompt=8000.0, output=2000.0)
    whole, piped = evaluate(setting, shapes_of((1, 1, 1, 1, 200), (1, 4, 1, 1, 200))).tpot
    assert piped < whole


@given(st.tuples(POWERS, POWERS, POWERS), LENGTHS, st.integers(1, 500), st.integers(1, 100))
@settings(**SHARED)
def test_more_sequences_never_make_a_step_faster(routed_model, setting_of, shapes_of, degrees, lengths, batch, more):
    t, p, dp = degrees
    setting = setting_of(routed_model, prompt=float(lengths[0]), output=float(lengths[1]))
    times = evaluate(setting, shapes_of((t, p, 1, dp, batch), (t, p, 1, dp, batch + more)))
    # The number of decoding sequences is found by iteration, to about a thousandth.
    assert times.tpot[1] >= times.tpot[0] * (1.0 - 2e-3)
    assert times.ttft[1] >= times.ttft[0] * (1.0 - 2e-3)


@pytest.mark.parametrize("card", ["h100-sxm-80gb", "h200-sxm-141gb", "b200-180gb", "a100-sxm-80gb", "l40s-48gb", "mi300x-192gb"])
@pytest.mark.parametrize("engine", ["vllm", "tensorrt-llm", "sglang", "lmdeploy"])
def test_every_engine_and_card_answers(routed_model, setting_of, shapes_of, card, engine):
    times = evaluate(setting_of(routed_model, card, engine), shapes_of((1, 1, 1, 1, 1), (8, 1, 8, 1, 64), (2, 2, 1, 2, 33)))
    assert (times.tpot > 0.0).all()
    assert np.isfinite(times.tpot).all()


@given(st.sampled_from([100e9, 200e9, 400e9]), st.integers(1, 300))
@settings(**SHARED)
def test_a_better_network_is_never_slower(routed_model, setting_of, shapes_of, slow_and_fast_paths, speed, batch):
    shapes = shapes_of((16, 1, 1, 1, batch), (8, 2, 1, 1, batch), (1, 1, 16, 16, batch))
    base = setting_of(routed_model)
    both = slow_and_fast_paths(base.gpu, 50e9, speed)
    slow, fast = (evaluate(setting_of(routed_model, paths=joined), shapes).tpot for joined in both)
    assert (fast <= slow * (1.0 + 1e-9)).all()


def test_extremes_stay_finite(hybrid_model, setting_of, shapes_of):
    shapes = shapes_of((1, 1, 1, 1, 1), (8, 64, 1, 1, 1), (8, 100, 8, 1, 10**6), (1, 1, 64, 64, 10**6), (64, 1, 1, 1, 10**5))
    for prompt, output, chunk in ((1.0, 1.0, 1), (10**6, 1.0, 16), (1.0, 10**6, 8192), (10**6, 10**6, 8192)):
        setting = setting_of(hybrid_model, prompt=float(prompt), output=float(output), max_batched_tokens=chunk)
        times = evaluate(setting, shapes)
        for name in COLUMNS:
            column = getattr(times, name)
            assert np.isfinite(column).all(), (name, prompt, output)
            assert (column >= 0.0).all(), (name, prompt, output)


def test_a_table_in_blocks_is_the_same(dense_model, setting_of, shapes_of):
    rows = [(1 << (index % 4), 1 + index % 3, 1, 1, 1 + index % 97) for index in range(BLOCK + 5)]
    setting = setting_of(dense_model)
    whole = evaluate(setting, shapes_of(*rows))
    tail = evaluate(setting, shapes_of(*rows[-5:]))
    for name in (*COLUMNS, "algorithm"):
        np.testing.assert_array_equal(getattr(whole, name)[-5:], getattr(tail, name))


def test_efficiency_of_one_gpu_is_one_and_falls_with_more(dense_model, setting_of, shapes_of):
    times = evaluate(setting_of(dense_model), shapes_of((1, 1, 1, 1, 16), (2, 1, 1, 1, 16), (8, 1, 1, 1, 16)))
    assert times.efficiency[0] == pytest.approx(1.0)
    assert times.latency_efficiency[0] == pytest.approx(1.0)
    assert times.efficiency[0] > times.efficiency[1] > times.efficiency[2] > 0.2
    expected = times.tpot[0] / (8.0 * times.tpot[2])
    assert times.latency_efficiency[2] == pytest.approx(expected)


def test_prompts_in_steps_cost_time_and_a_prefix_cache_saves_it(dense_model, setting_of, shapes_of):
    shapes = shapes_of((4, 1, 1, 1, 64))
    none, half, short = (
        evaluate(setting_of(dense_model, prompt=4000.0, output=200.0, prefix_cache_hit_rate=0.0), shapes),
        evaluate(setting_of(dense_model, prompt=4000.0, output=200.0, prefix_cache_hit_rate=0.5), shapes),
        evaluate(setting_of(dense_model, prompt=4000.0, output=4000.0), shapes),
    )
    assert half.tpot[0] < none.tpot[0]
    assert half.ttft[0] < none.ttft[0]
    assert short.tpot[0] < none.tpot[0]  # twenty times fewer prompts a step outweigh a longer context


def test_a_window_stops_the_growth_with_the_context(dense_model, windowed_model, setting_of, shapes_of):
    def step(model, prompt):
        return evaluate(setting_of(model, prompt=prompt), shapes_of((1, 1, 1, 1, 1))).tpot[0]

    assert step(windowed_model, 1000.0) == pytest.approx(step(windowed_model, 100000.0))
    assert step(dense_model, 1000.0) < step(dense_model, 100000.0)


def test_constants_are_the_cards_own(dense_model, setting_of, shapes_of):
    setting = setting_of(dense_model)
    constants = step_constants("vllm", "hopper")
    step = step_times(setting, shapes_of((8, 1, 1, 1, 1)), constants)
    layers = dense_model.layers
    floor = layers * (constants.layer + constants.sequence) + constants.step
    assert step.parts[3, 0] == pytest.approx(floor)
    table = evaluate_calibrated(setting, shapes_of((8, 1, 1, 1, 1)))
    assert table.fixed[0] == pytest.approx(floor)
    assert table.algorithm[0] != "none"


def test_prompts_do_not_take_the_factor_of_decoding_tokens(dense_model, setting_of, shapes_of):
    # A pass with a prompt takes what decoding tokens take by the engine's factor, and what the prompt adds to the measured all-reduce without it.
    constants, shapes = step_constants("tensorrt-llm 1.0", "hopper"), shapes_of((8, 1, 1, 1, 64))
    decoding = step_times(setting_of(dense_model, engine="tensorrt-llm", prompt=1.0, output=1e6), shapes, constants).parts[1, 0]
    for prompt in (100.0, 4000.0):
        setting = setting_of(dense_model, engine="tensorrt-llm", prompt=prompt, output=256.0)
        one, two, three = (
            step_times(setting, shapes, replace(constants, decode_exchange=factor)).prompt_parts[1, 0] for factor in (1.0, 2.0, 3.0)
        )
        assert two - one == pytest.approx(decoding, rel=0.3)
        assert three - two == pytest.approx(two - one, rel=0.15)


def test_an_unknown_profile_is_refused(dense_model, setting_of, shapes_of):
    with pytest.raises(PlannerError, match="UNKNOWN_PROFILE"):
        evaluate(setting_of(dense_model, profile="exact"), shapes_of((1, 1, 1, 1, 1)))


def test_both_profiles_fill_the_same_columns(dense_model, setting_of, shapes_of):
    shapes = shapes_of((8, 1, 1, 1, 8))
    for profile in ("calibrated", "hockney"):
        times = evaluate(setting_of(dense_model, profile=profile), shapes)
        assert all(getattr(times, name).shape == (1,) for name in TimesTable.__dataclass_fields__)

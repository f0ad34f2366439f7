"""Speculative decoding: tokens gained, what verifying and proposing cost, and that nothing changes without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.catalog.architecture import Draft, Speculation
from planner.catalog.models import model
from planner.catalog.step_times import step_constants
from planner.cost.closed_loop import step_times
from planner.cost.evaluation import evaluate
from planner.cost.speculation import tokens_a_pass
from planner.problem.companions import prediction_layers

SHARED = {"max_examples": 40, "deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
ACCEPTANCES = st.floats(0.0, 1.0)
TOKENS = st.integers(1, 16)
LAYOUTS = ((1, 1, 1, 1, 4), (8, 1, 1, 1, 4), (4, 2, 1, 1, 64), (2, 1, 8, 4, 64))


def with_draft(target, acceptance, tokens=4, *, alone=False, small=None):
    draft = Draft(small or model("llama-3.1-8b"), tokens, alone=alone)
    return replace(target, draft=draft, speculation=Speculation(tokens, acceptance))


@given(ACCEPTANCES, TOKENS)
def test_tokens_gained_are_the_geometric_sum(acceptance, tokens):
    gained = Speculation(tokens, acceptance).yielded
    assert 1.0 <= gained <= tokens + 1
    if acceptance < 0.999:
        assert gained == pytest.approx((1.0 - acceptance ** (tokens + 1)) / (1.0 - acceptance))


def test_tokens_gained_at_the_ends():
    assert Speculation(4, 0.0).yielded == 1.0
    assert Speculation(4, 1.0).yielded == 5.0
    assert Speculation(1, 0.8).yielded == pytest.approx(1.8)
    assert tokens_a_pass(Speculation(1, 0.8)) == pytest.approx(1.8)
    assert tokens_a_pass(Speculation(4, 0.0)) == pytest.approx(1.0)


@given(ACCEPTANCES, ACCEPTANCES, TOKENS)
@settings(**SHARED)
def test_more_accepted_tokens_are_never_slower(dense_model, setting_of, shapes_of, first, second, tokens):
    low, high = sorted((first, second))
    slow, fast = (evaluate(setting_of(with_draft(dense_model, a, tokens)), shapes_of(*LAYOUTS[:3])).tpot for a in (low, high))
    # The number of decoding sequences is found by iteration, to about a thousandth.
    assert (fast <= slow * (1.0 + 2e-3)).all()


@pytest.mark.parametrize("profile", ["calibrated", "hockney"])
def test_proposals_that_are_never_accepted_only_cost(dense_model, routed_model, setting_of, shapes_of, profile):
    for target in (dense_model, routed_model):
        plain = evaluate(setting_of(target, profile=profile), shapes_of(*LAYOUTS))
        rejected = evaluate(setting_of(with_draft(target, 0.0), profile=profile), shapes_of(*LAYOUTS))
        assert (rejected.tpot > plain.tpot).all()
        assert (rejected.throughput < plain.throughput).all()


@pytest.mark.parametrize("profile", ["calibrated", "hockney"])
def test_a_draft_costs_more_than_n_grams_and_whole_more_than_cut(dense_model, setting_of, shapes_of, profile):
    def tpot(target):
        return evaluate(setting_of(target, profile=profile), shapes_of((8, 1, 1, 1, 4))).tpot[0]

    looked_up = tpot(replace(dense_model, speculation=Speculation(4, 0.7)))
    cut, whole = (tpot(with_draft(dense_model, 0.7, alone=alone)) for alone in (False, True))
    assert looked_up < cut < whole
    assert looked_up < tpot(dense_model)


def test_a_single_sequence_gains_by_what_the_steps_yield(dense_model, setting_of, shapes_of):
    # One sequence on one GPU: weights are read whatever is verified, so the step hardly grows and the time per token falls by the tokens gained.
    plain, looked_up = (
        evaluate(setting_of(target), shapes_of((1, 1, 1, 1, 1))).tpot[0]
        for target in (dense_model, replace(dense_model, speculation=Speculation(4, 0.7)))
    )
    assert plain / looked_up == pytest.approx(Speculation(4, 0.7).yielded, rel=0.05)


def test_what_saves_time_for_few_sequences_costs_time_for_many(dense_model, setting_of, shapes_of):
    shapes = shapes_of((4, 1, 1, 1, 1), (4, 1, 1, 1, 1024))
    served = with_draft(dense_model, 0.6, small=model("llama-3.2-1b"))
    gain = evaluate(setting_of(dense_model), shapes).tpot / evaluate(setting_of(served), shapes).tpot
    assert gain[0] > 1.2
    assert gain[1] < 1.0


def test_the_step_without_its_proposals_is_that_of_more_tokens(dense_model, setting_of, shapes_of):
    # Verified tokens are multiplied like decoding sequences, but read one cache.
    shapes, constants = shapes_of((1, 1, 1, 1, 1)), step_constants("vllm", "hopper")
    target = replace(dense_model, speculation=Speculation(3, 0.0))
    verified, plain = (step_times(setting_of(one), shapes, constants) for one in (target, dense_model))
    assert verified.parts.sum() >= plain.parts.sum()
    np.testing.assert_allclose(verified.parts[3], plain.parts[3])  # kernels and host, once a step


def test_experts_touched_grow_with_the_tokens_verified(routed_model, setting_of, shapes_of):
    shapes = shapes_of((1, 1, 1, 1, 1))
    plain, verified = (
        evaluate(setting_of(target), shapes).compute[0] for target in (routed_model, replace(routed_model, speculation=Speculation(3, 0.0)))
    )
    # Four tokens touch almost four times as many of 128 experts, eight each.
    assert 2.0 < verified / plain < 4.0


def test_a_prediction_layer_is_one_layer_and_the_head(setting_of, shapes_of):
    target = model("deepseek-v3")
    layers = replace(prediction_layers(target), layer_sequence=(target.layer_sequence[-1],) * 2)
    shapes, constants = shapes_of((8, 1, 8, 1, 8)), step_constants("sglang", "hopper")
    step = {}
    for count, draft in ((1, prediction_layers(target)), (2, layers)):
        served = replace(target, draft=Draft(draft, 1, shares_ends=True), speculation=Speculation(1, 0.8))
        step[count] = step_times(setting_of(served, engine="sglang"), shapes, constants).tpot[0]
    plain = step_times(setting_of(target, engine="sglang"), shapes, constants).tpot[0]
    # Each proposal goes through one prediction layer, however many there are.
    assert step[1] == pytest.approx(step[2])
    assert 1.3 < plain / step[1] < 1.8


def test_prompts_go_through_the_draft(dense_model, setting_of, shapes_of):
    shapes = shapes_of((4, 1, 1, 1, 1))
    long = {"prompt": 8000.0, "output": 8.0}
    looked_up, drafted = (
        evaluate(setting_of(target, **long), shapes).ttft[0]
        for target in (replace(dense_model, speculation=Speculation(1, 0.5)), with_draft(dense_model, 0.5, tokens=1))
    )
    small, large = model("llama-3.1-8b"), dense_model
    assert 1.02 < drafted / looked_up < 1.0 + 2.0 * small.layers * small.hidden_size / (large.layers * large.hidden_size)


def test_no_request_gains_more_tokens_than_it_asks_for(dense_model, setting_of, shapes_of):
    target = replace(dense_model, speculation=Speculation(7, 1.0))
    one, two = (evaluate(setting_of(target, output=length), shapes_of((1, 1, 1, 1, 1))).tpot[0] for length in (1.0, 2.0))
    assert one == pytest.approx(2.0 * two, rel=0.01)


@pytest.mark.parametrize("profile", ["calibrated", "hockney"])
def test_parts_add_up(hybrid_model, setting_of, shapes_of, profile):
    times = evaluate(setting_of(with_draft(hybrid_model, 0.7), profile=profile), shapes_of(*LAYOUTS))
    np.testing.assert_allclose(times.compute + times.tp_comm + times.pp_comm + times.ep_comm + times.fixed, times.tpot, rtol=1e-12)
    np.testing.assert_allclose(times.queueing + times.prefill_compute + times.prefill_comm, times.ttft, rtol=1e-12)
    assert times.efficiency[0] == pytest.approx(1.0)

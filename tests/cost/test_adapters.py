"""Adapters in a step: which are read, what they multiply, and what their kernels cost."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.architecture import Adapters, LayerKind
from planner.catalog.models import model
from planner.catalog.step_times import step_constants
from planner.cost.adapters import KERNELS, adapted_matrices, adapter_terms, used
from planner.cost.evaluation import evaluate


@given(st.integers(1, 200), st.integers(1, 1000))
def test_no_more_adapters_are_used_than_there_are_slots_or_requests(slots, requests):
    count = float(used(slots, np.array([float(requests)]))[0])
    assert 1.0 - 1e-9 <= count <= min(slots, requests) + 1e-9


def test_sizes_of_a_layer_by_hand(setting_of, shapes_of):
    # Llama-3.1-8B, d 4096: q and o 8192, k and v 5120, gate, up and down 18432 elements a rank of the adapter: 81,920.
    small = replace(model("llama-3.1-8b"), adapters=Adapters(4, 16))
    setting, constants = setting_of(small), step_constants("vllm", "hopper")
    terms = adapter_terms(small.layer(0), setting, shapes_of((1, 1, 1, 1, 8)), constants)
    elements = 16 * (2 * 8192 + 2 * 5120 + 3 * 18432)
    assert terms.read[0] == pytest.approx(2 * elements / (3.35e12 * constants.weight_read["bf16"]), rel=0.01)
    assert terms.multiply[0] == pytest.approx(2 * elements / (989e12 * constants.multiply["bf16"]), rel=0.01)
    assert terms.kernels == pytest.approx(7 * KERNELS)
    assert adapted_matrices(LayerKind(feed_forward=replace(small.layer(0).feed_forward, width=0, experts=8, expert_width=64)), 4096) == 0


@pytest.mark.parametrize("profile", ["calibrated", "hockney"])
def test_more_slots_and_higher_ranks_cost_more(dense_model, routed_model, setting_of, shapes_of, profile):
    shapes = shapes_of((1, 1, 1, 1, 64), (8, 1, 1, 1, 64))
    for target in (dense_model, routed_model):
        steps = [
            evaluate(setting_of(replace(target, adapters=adapters), profile=profile), shapes).tpot
            for adapters in (None, Adapters(1, 8), Adapters(8, 8), Adapters(8, 256))
        ]
        assert all((more > less).all() for less, more in pairwise(steps))


def test_one_request_pays_for_one_adapter_however_many_are_held(dense_model, setting_of, shapes_of):
    one, many = (
        evaluate(setting_of(replace(dense_model, adapters=Adapters(slots, 64))), shapes_of((1, 1, 1, 1, 1))).tpot[0] for slots in (1, 100)
    )
    assert one == pytest.approx(many)


def test_a_small_model_loses_the_larger_share_of_its_time(setting_of, shapes_of):
    def slower(name):
        plain = model(name)
        served = replace(plain, adapters=Adapters(1, 16))
        times = [evaluate(setting_of(target), shapes_of((4, 1, 1, 1, 1))).tpot[0] for target in (plain, served)]
        return times[1] / times[0]

    assert slower("llama-3.1-8b") > slower("llama-3.1-70b") > 1.05

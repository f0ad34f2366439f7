"""Textbook forms: figures by hand and the laws they obey."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost import collectives

ALPHA, BANDWIDTH = 2e-6, 450e9
FORMS = [
    collectives.ring_all_reduce,
    collectives.tree_all_reduce,
    collectives.one_shot_all_reduce,
    collectives.two_shot_all_reduce,
    collectives.reduce_scatter,
    collectives.all_gather,
    collectives.all_to_all,
]
ranks = st.integers(1, 600)
sizes = st.floats(0.0, 1e12)


@pytest.mark.parametrize("form", FORMS)
def test_one_rank_costs_nothing(form):
    assert form(1, 1e9, ALPHA, BANDWIDTH) == 0.0


@pytest.mark.parametrize("form", FORMS)
@given(count=ranks, small=sizes, large=sizes)
def test_a_larger_message_never_takes_less(form, count, small, large):
    small, large = sorted((small, large))
    assert form(count, small, ALPHA, BANDWIDTH) <= form(count, large, ALPHA, BANDWIDTH)


@pytest.mark.parametrize("form", FORMS)
@given(count=ranks, size=sizes)
def test_one_more_rank_never_takes_less(form, count, size):
    assert form(count, size, ALPHA, BANDWIDTH) <= form(count + 1, size, ALPHA, BANDWIDTH) * (1 + 1e-12)


@pytest.mark.parametrize("form", FORMS)
@given(count=ranks, size=sizes, factor=st.floats(1.0, 100.0))
def test_a_faster_link_never_takes_more(form, count, size, factor):
    assert form(count, size, ALPHA, BANDWIDTH * factor) <= form(count, size, ALPHA, BANDWIDTH)


@given(count=ranks, size=sizes)
def test_reduce_scatter_and_all_gather_make_a_ring_all_reduce(count, size):
    two = collectives.reduce_scatter(count, size, ALPHA, BANDWIDTH) + collectives.all_gather(count, size, ALPHA, BANDWIDTH)
    assert two == pytest.approx(float(collectives.ring_all_reduce(count, size, ALPHA, BANDWIDTH)))


@pytest.mark.parametrize(
    ("count", "hops"), [(2, 2), (3, 4), (4, 4), (5, 6), (6, 6), (7, 6), (8, 6), (9, 8), (64, 12), (512, 18), (1024, 20)]
)
def test_tree_hops_of_any_group(count, hops):
    assert collectives.tree_hops(count) == hops


def test_forms_by_hand():
    message = 8e6
    assert collectives.ring_all_reduce(8, message, ALPHA, BANDWIDTH) == pytest.approx(14 * 2e-6 + 14e6 / 450e9)
    assert collectives.tree_all_reduce(8, message, ALPHA, BANDWIDTH) == pytest.approx(6 * 2e-6 + 14e6 / 450e9)
    assert collectives.one_shot_all_reduce(8, message, 3e-6, BANDWIDTH) == pytest.approx(3e-6 + 56e6 / 450e9)
    assert collectives.two_shot_all_reduce(8, message, 3e-6, BANDWIDTH) == pytest.approx(3e-6 + 14e6 / 450e9)
    assert collectives.all_to_all(8, message, ALPHA, BANDWIDTH) == pytest.approx(7 * 2e-6 + 7e6 / 450e9)
    assert collectives.point_to_point(message, 3e-6, 50e9) == pytest.approx(3e-6 + 160e-6)


def test_one_shot_wins_small_and_two_shot_large():
    small, large = 16384.0, 64e6
    starts = (2.5e-6, 5e-6)
    assert collectives.one_shot_all_reduce(8, small, starts[0], 300e9) < collectives.two_shot_all_reduce(8, small, starts[1], 300e9)
    assert collectives.one_shot_all_reduce(8, large, starts[0], 300e9) > collectives.two_shot_all_reduce(8, large, starts[1], 300e9)


def test_arrays_broadcast():
    counts = np.array([1, 2, 4, 8])[:, None]
    messages = np.array([1e3, 1e6])
    times = collectives.ring_all_reduce(counts, messages, ALPHA, BANDWIDTH)
    assert times.shape == (4, 2)
    assert times[3, 1] == collectives.ring_all_reduce(8, 1e6, ALPHA, BANDWIDTH)
    assert np.all(times[0] == 0.0)


@given(inside=st.integers(1, 72), scopes=st.integers(1, 64), size=sizes)
def test_several_scopes_never_cost_less_than_one(inside, scopes, size):
    inner, outer = (ALPHA, BANDWIDTH), (3e-6, 50e9)
    whole = collectives.hierarchical_all_reduce(inside, scopes, size, inner, outer)
    one = collectives.ring_all_reduce(inside, size, *inner)
    assert math.isfinite(whole)
    assert whole >= one * (1 - 1e-12)
    if scopes == 1:
        assert whole == pytest.approx(float(one))


def test_hierarchy_moves_a_shard_over_each_rail():
    time = collectives.hierarchical_all_reduce(8, 2, 8e9, (0.0, 450e9), (0.0, 50e9))
    assert time == pytest.approx(2 * 7 / 8 * 8e9 / 450e9 + 1e9 / 50e9)

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.engines import engine, engine_names
from planner.cost.partition import balanced_partition, engine_partition, stage_loads, unbalanced_partition

GIB = 2.0**30
LOADS = st.lists(st.sampled_from([0.0, 0.2, 1.0, 1.0, 1.0, 3.5]), min_size=1, max_size=9)


def every_partition(layers, stages):
    for cuts in combinations(range(1, layers), stages - 1):
        ends = (0, *cuts, layers)
        yield tuple(right - left for left, right in pairwise(ends))


@settings(max_examples=60, deadline=None)
@given(loads=LOADS, stages=st.integers(1, 9), first=st.sampled_from([0.0, 0.7, 4.0]), last=st.sampled_from([0.0, 2.4, -0.5]))
def test_the_fullest_stage_is_as_empty_as_brute_force_can_make_it(loads, stages, first, last):
    stages = min(stages, len(loads))
    found = balanced_partition(loads, stages, first, last)
    assert sum(found) == len(loads)
    assert len(found) == stages
    assert min(found) >= 1
    floor = [max(load, 0.0) for load in [loads[0] + first, *loads[1:]]]
    floor[-1] = max((loads[-1] if len(loads) > 1 else loads[0] + first) + last, 0.0)
    best = min(max(stage_loads(floor, partition)) for partition in every_partition(len(loads), stages))
    assert max(stage_loads(floor, found)) <= best * (1 + 1e-6) + 1e-12


def test_equal_layers_are_dealt_evenly():
    assert balanced_partition([1.0] * 80, 8) == (10,) * 8
    assert sorted(balanced_partition([1.0] * 94, 8)) == [11, 11, 12, 12, 12, 12, 12, 12]


def test_heavy_ends_take_fewer_layers():
    found = balanced_partition([0.8] * 80, 8, 1.96, 1.96)
    assert found[0] == found[-1] == 8
    assert max(found) == 11


def test_light_first_layers_are_gathered():
    found = balanced_partition([0.136] * 3 + [2.68] * 58, 3, 0.22, 0.22)
    assert found == (22, 20, 19)


@pytest.mark.parametrize("stages", [0, 5])
def test_more_stages_than_layers_are_refused(stages):
    with pytest.raises(ValueError, match="cannot be cut"):
        balanced_partition([1.0] * 4, stages)
    with pytest.raises(ValueError, match="cannot be cut"):
        engine_partition(engine("vllm"), 4, stages)


@given(
    layers=st.integers(1, 130),
    stages=st.integers(1, 32),
    name=st.sampled_from([*engine_names(), "vllm 0.7", "sglang 0.5.6", "sglang 0.5.7"]),
)
def test_an_engine_leaves_no_layer_out(layers, stages, name):
    stages = min(stages, layers)
    found = engine_partition(engine(name), layers, stages)
    assert sum(found) == layers
    assert len(found) == stages
    assert min(found) >= 1


def test_a_bad_split_is_told_with_its_override():
    warned = unbalanced_partition(engine("sglang 0.5"), [2.0 * GIB] * 61, 8)
    assert warned is not None
    assert warned.code == "PP_UNBALANCED"
    assert "[7, 7, 7, 7, 7, 7, 7, 12]" in warned.message
    assert "24.0 GiB" in warned.message
    assert "16.0" in warned.message
    assert warned.hint.startswith("set SGLANG_PP_LAYER_PARTITION=")
    override = [int(count) for count in warned.hint.split("=")[1].split(",")]
    assert sum(override) == 61
    assert max(override) == 8


def test_a_good_split_is_not():
    assert unbalanced_partition(engine("vllm"), [1.0] * 80, 8) is None

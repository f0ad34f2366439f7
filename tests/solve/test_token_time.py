"""Ties of plans of equal cost: the value of a replica, its laws, and which of two plans it puts first."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.answer.answering import Options, answer
from planner.solve.instance import Instance
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.rules import RULES
from planner.solve.token_time import TimedShapes, token_times
from tests.solve.exhaustive import best, keeps_limits, pool_cost
from tests.solve.fleets import ShapeRow, free_pool, instance_of, random_instance

PROBLEMS = Path(__file__).parents[2] / "problems"


def timed(rows: list[tuple[int, int, int, int]], pool: int = 0) -> TimedShapes:
    """Shapes of one deployment from (GPUs, capacity, time, relief)."""
    gpus, capacity, tpot, relief = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return TimedShapes(np.zeros_like(gpus), np.full_like(gpus, pool), gpus, 10 * gpus, capacity, tpot, relief)


def values_of(rows: list[tuple[int, int, int, int]], load: int, node_gpus: dict[int, int] | None = None) -> list[int]:
    found: list[int] = token_times(timed(rows), np.array([load], dtype=np.int64), node_gpus or {}).tolist()
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 99), st.integers(1, 90_000), st.integers(0, 40_000)),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 300),
)
def test_no_value_is_below_nothing(rows: list[tuple[int, int, int, int]], load: int):
    assert min(values_of(rows, load)) >= 0


def test_a_plan_without_room_is_worth_its_mean_time():
    """Two replicas that carry half each, and one that carries all, on as many GPUs."""
    half, whole = values_of([(4, 50, 30_000, 9_000), (8, 100, 27_000, 0)], 100)
    assert (2 * half, whole) == (30_000, 27_000)


def test_room_is_worth_its_relief():
    """Two replicas with room for half the load more: half of what room for one load brings."""
    roomy, whole = values_of([(4, 75, 30_000, 9_000), (8, 100, 27_000, 0)], 100)
    assert 2 * roomy - whole == pytest.approx(30_000 - 0.5 * 9_000 - 27_000, abs=2)


def test_whole_nodes_are_what_is_paid_for():
    """A TP4 alone pays for its node as a TP8 does: the time alone decides."""
    four, eight = values_of([(4, 100, 30_000, 0), (8, 100, 20_000, 0)], 100, {0: 8})
    assert (four, eight) == (30_000, 20_000)


def chosen(rows: list[ShapeRow], load: int, *free: int) -> tuple[int, ...]:
    pools = 1 + max(row.pool for row in rows)
    decision = decide(instance_of(rows, [load], [free_pool(*free)] * pools), SolveOptions(), RULES)
    assert decision.model is not None
    counts = dict(zip(decision.model.instance.source.tolist(), decision.counts, strict=True))
    return tuple(counts.get(shape, 0) for shape in range(len(rows)))


def test_tensor_parallel_before_a_pipeline_of_the_same_gpus():
    rows = [ShapeRow(4, 20, 8, groups=2, tpot=50_000, comm=1), ShapeRow(8, 20, 8, tpot=40_000, comm=9)]
    assert chosen(rows, 20, 8, 8) == (0, 1)


def test_a_mix_without_room_does_not_look_half_empty():
    """Five GPUs that hold 65 of 64 sequences in replicas that answer in 59 and 60, or four that hold 64 in one that answers in 51 and costs as much."""
    rows = [
        ShapeRow(1, 9, 4, tpot=60_000),
        ShapeRow(4, 56, 16, tpot=59_000),
        ShapeRow(2, 64, 20, tpot=51_000, pool=1),
    ]
    decision = decide(instance_of(rows, [64], [free_pool(8), free_pool(2)]), SolveOptions(), RULES)
    assert decision.stages[0].value == 20
    assert decision.model is not None
    assert [rows[shape].pool for shape, count in zip(decision.model.instance.source.tolist(), decision.counts, strict=True) if count] == [1]


def test_money_measures_room_across_gpu_types():
    """Three replicas on one type with room for a fifth more, or five on two types that cost as much and are full."""
    rows = [ShapeRow(1, 40, 30, tpot=30_000), ShapeRow(1, 7, 10, tpot=30_000, pool=1)]
    assert chosen(rows, 100, 8, 8) == (3, 0)


def least_tie(instance: Instance, least: int) -> int:
    """Least tie value of all plans of the least cost, by trying every count vector and every packing."""
    columns = instance.shapes
    bounds = [int(instance.pools[int(columns.pool[s])].slots(int(columns.size[s]))) // int(columns.groups[s]) for s in range(len(columns))]
    found = []
    for counts in product(*(range(bound + 1) for bound in bounds)):
        if not keeps_limits(instance, counts):
            continue
        money = 0
        for pool in range(len(instance.pools)):
            part = pool_cost(instance, pool, tuple(count if columns.pool[s] == pool else 0 for s, count in enumerate(counts)))
            money = least + 1 if part is None else money + part
        if money == least:
            found.append(sum(count * int(value) for count, value in zip(counts, columns.token_time, strict=True)))
    return min(found)


def test_brute_force_finds_no_better_tie():
    """Prices by GPU, so that many plans cost the same."""
    compared = tied = 0
    for seed in range(40):
        drawn = random_instance(seed, "cost")
        if len(drawn.shapes) > 4:
            continue
        columns = drawn.shapes
        instance = replace(drawn, shapes=replace(columns, price=columns.gpus))
        expected = best(instance)
        if expected is None:
            continue
        stages = {stage.name: stage for stage in decide(instance, SolveOptions(), RULES).stages}
        assert stages["token_time"].bound == stages["token_time"].value
        assert stages["token_time"].value == least_tie(instance, expected[0])
        compared += 1
        tied += stages["token_time"].value > 0
    assert compared >= 10
    assert tied >= 10


def plan_of(concurrency: int) -> Counter[tuple[int, int]]:
    found = answer(
        str(PROBLEMS / "two_node_h100.yaml"), Options(overrides=(f"deployments.chat.workload.concurrency={concurrency}",), explain=False)
    )
    return Counter((replica.shape.tp, replica.shape.pp) for item in found.plan.deployments for replica in item.replicas)


@pytest.mark.parametrize(
    ("concurrency", "plan"),
    [(4, {(8, 1): 1}), (52, {(8, 1): 1}), (64, {(8, 1): 2})],
    ids=["little load", "full", "two with room before one that is full"],
)
def test_two_nodes_of_h100(concurrency, plan):
    assert plan_of(concurrency) == Counter(plan)

"""The front of money against latency: equal to brute force, without a dominated point, from the cheapest plan to the fastest."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from planner.plan.outcome import Status
from planner.solve.front import FrontPoint, front
from planner.solve.instance import Instance
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES
from tests.solve.exhaustive import best
from tests.solve.exhaustive_located import best_located
from tests.solve.fleets import ShapeRow, free_pool, instance_of, random_instance
from tests.solve.located_fleets import located_instance
from tests.solve.placed import assert_placed


def points_of(instance: Instance, by: str = "tpot", options: SolveOptions | None = None) -> list[tuple[int, int]]:
    found, complete = front(instance, options or SolveOptions(), getattr(instance.shapes, by))
    assert complete
    for point in found:
        assert point.proved
        assert_a_plan(instance, point, by)
    return [(point.decision.stages[0].value, point.time) for point in found]


def assert_a_plan(instance: Instance, point: FrontPoint, by: str) -> None:
    """The plan is placed, and its slowest shape is as slow as the point says."""
    decision = point.decision
    assert decision.status is Status.OPTIMAL
    assert decision.model is not None
    chosen = decision.model.instance
    assert_placed(chosen, place(decision.model, decision.values), decision.counts)
    used = np.array(decision.counts) > 0
    if used.any():
        assert int(getattr(chosen.shapes, by)[used].max()) == point.time


def expected_of(instance: Instance, by: str, brute) -> list[tuple[int, int]]:
    """Every threshold by brute force; the steps of the least money."""
    times = getattr(instance.shapes, by)
    steps: list[tuple[int, int]] = []
    for threshold in sorted(set(times.tolist())):
        found = brute(instance.keep(times <= threshold))
        if found is not None and (not steps or found[-1] < steps[-1][0]):
            steps.append((found[-1], threshold))
    return steps[::-1]


def assert_equals_brute_force(seed: int) -> int:
    by = "tpot" if seed % 3 else "ttft"
    instance = random_instance(seed, "cost")
    found = points_of(instance, by)
    assert found == expected_of(instance, by, best)
    assert all(dear > cheap and fast < slow for (cheap, slow), (dear, fast) in pairwise(found))
    whole = decide(instance, SolveOptions(), RULES)
    if not found:
        assert whole.status is Status.INFEASIBLE
        return 0
    assert found[0][0] == whole.stages[0].value
    if by == "tpot":
        fastest = decide(replace(instance, objective="latency"), SolveOptions(), RULES)
        assert found[-1][1] == fastest.stages[0].value
    return len(found)


def test_a_sample_of_tiny_fleets():
    lengths = [assert_equals_brute_force(seed) for seed in range(400, 440)]
    assert sum(length > 0 for length in lengths) >= 10
    assert sum(length > 1 for length in lengths) >= 2


@pytest.mark.thorough
def test_many_tiny_fleets():
    lengths = [assert_equals_brute_force(seed) for seed in range(500, 1500)]
    assert sum(length > 1 for length in lengths) >= 50


def with_times(seed: int) -> Instance:
    """A tiny fleet with rules about places and no load that may be missing, its shapes given different times."""
    instance = located_instance(seed)
    times = 5 + np.arange(len(instance.shapes), dtype=np.int64) * 7 % 11
    rules = tuple(replace(rule, may_go_unserved=rule.may_go_unserved * 0) for rule in instance.rules)
    return replace(instance, shapes=replace(instance.shapes, tpot=times), rules=rules)


def test_rules_about_places_hold_at_every_point():
    lengths = []
    for seed in range(100):
        instance = with_times(seed)
        # Brute force over places is for very few GPUs.
        if sum(int(pool.free.sum()) for pool in instance.pools) > 7:
            continue
        found = points_of(instance)
        assert found == expected_of(instance, "tpot", best_located)
        lengths.append(len(found))
    assert sum(length > 0 for length in lengths) >= 5


def test_the_front_of_a_small_fleet():
    """One replica of 8 at 10 and 5 ns, two of 4 at 9 ns for less, one that is slower and dearer."""
    rows = [
        ShapeRow(8, capacity=10, price=80, tpot=5),
        ShapeRow(4, capacity=5, price=20, tpot=9),
        ShapeRow(8, capacity=10, price=90, tpot=7),
        ShapeRow(2, capacity=10, price=10, tpot=30),
    ]
    assert points_of(instance_of(rows, [10], [free_pool(8, 8)])) == [(10, 30), (40, 9), (80, 5)]


def test_the_budget_ends_the_front():
    from planner.solve.instance import Budget

    rows = [ShapeRow(8, capacity=10, price=80, tpot=5), ShapeRow(4, capacity=5, price=20, tpot=9)]
    assert points_of(instance_of(rows, [10], [free_pool(8, 8)], budget=Budget(79))) == [(40, 9)]


def test_gpus_stand_for_money():
    rows = [ShapeRow(8, capacity=10, price=1, tpot=5), ShapeRow(4, capacity=10, price=9, tpot=9)]
    assert points_of(instance_of(rows, [10], [free_pool(8)], objective="gpus")) == [(4, 9), (8, 5)]


def test_a_front_that_is_cut_short_claims_no_proof():
    """Without any effort left a point is a plan, and no more."""
    for seed in range(400, 412):
        instance = random_instance(seed, "cost")
        found, _ = front(instance, SolveOptions(effort=1e-9), instance.shapes.tpot)
        exact = {time: value for value, time in expected_of(instance, "tpot", best)}
        for point in found:
            value = point.decision.stages[0].value
            if point.proved:
                assert exact[point.time] == value
            bound = point.decision.stages[0].bound
            assert bound is None or bound <= value

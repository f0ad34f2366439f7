"""The greatest share from the top down: what prices of the room rule out, and the plans among the counts that they leave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.fleets import instance as large_fleet
from planner.plan.outcome import Status
from planner.solve import cpsat, served
from planner.solve.decomposition.fitting import fit
from planner.solve.decomposition.knapsack import Knapsack
from planner.solve.decomposition.tightening import ranges
from planner.solve.instance import ReplicaLimits
from planner.solve.model import build
from planner.solve.options import SolveOptions
from planner.solve.rules import RULES
from planner.solve.search import Search
from planner.solve.served import most_served
from planner.solve.shares import Served, at_share
from planner.solve.stages import expression
from tests.solve.fleets import ShapeRow, free_pool, instance_of
from tests.solve.test_narrowing import fleet

EFFORT = cpsat.Limits(8.0)


def greatest(seed: int) -> int | None:
    """Greatest share by the program in which it is a variable; None where there is no plan."""
    model = build(replace(fleet(seed), objective="throughput"), RULES)
    result = cpsat.minimise(model.program, expression(model, "throughput"), EFFORT)
    assert result.closed
    return None if result.objective is None else -result.objective


def assert_prices_never_mislead(seed: int) -> tuple[bool, bool]:
    """Shares that prices rule out have no plan; those with one keep all their minimal plans of fewest GPUs within the counts left. Tells what was seen."""
    most = greatest(seed)
    if not most:
        return False, False
    ruled_out = narrowed = False
    for share in (most // 2, most * 9 // 10, most, most + 1, most + most // 50, 2 * most):
        model = build(at_share(replace(fleet(seed), objective="throughput"), share), RULES)
        found = fit(model)
        assert found is not None
        if found.impossible:
            assert share > most
            ruled_out = True
            continue
        left = found.ranges()
        narrow = model.program.within(model.count, left.low.tolist(), left.high.tolist())
        wide, close = (cpsat.minimise(program, expression(model, "gpus"), EFFORT) for program in (model.program, narrow))
        assert (close.status, close.objective) == (wide.status, wide.objective)
        narrowed |= bool((left.high < np.array(model.program.upper[: len(left.high)])).any())
    return ruled_out, narrowed


def test_prices_of_the_room_rule_out_nothing_that_a_plan_serves():
    seen = [assert_prices_never_mislead(seed) for seed in range(8)]
    assert all(sum(which) >= 4 for which in zip(*seen, strict=True))


@pytest.mark.thorough
def test_prices_of_the_room_rule_out_nothing_that_a_plan_serves_many_times():
    seen = [assert_prices_never_mislead(seed) for seed in range(3_000, 3_150)]
    assert all(sum(which) >= 75 for which in zip(*seen, strict=True))


def assert_the_search_is_right(seed: int) -> bool:
    """The share found has a plan, nothing above the bound has one, and where nothing is left to prove they are the optimum."""
    most = greatest(seed)
    found = most_served(Search(replace(fleet(seed), objective="throughput"), SolveOptions(), RULES))
    if most is None:
        assert not isinstance(found, Served)
        return False
    assert isinstance(found, Served)
    assert found.share <= most <= found.bound
    return found.share == most == found.bound


@pytest.fixture
def _few_are_many(monkeypatch):
    monkeypatch.setattr(served, "MANY", 2)


@pytest.mark.usefixtures("_few_are_many")
def test_small_fleets_from_the_top_down():
    assert sum(assert_the_search_is_right(seed) for seed in range(6)) >= 3


@pytest.mark.thorough
@pytest.mark.usefixtures("_few_are_many")
def test_small_fleets_from_the_top_down_many_times():
    assert sum(assert_the_search_is_right(seed) for seed in range(4_000, 4_150)) >= 90


def test_ten_deployments_are_proved_or_nearly():
    instance = replace(large_fleet(256, 10, 2), objective="throughput")
    found = most_served(Search(instance, SolveOptions(), RULES))
    assert isinstance(found, Served)
    assert found.bound - found.share <= 0.005 * found.bound


def test_no_plan_at_all_is_left_to_the_program_with_the_share(monkeypatch):
    """Both need at least three replicas and there is room for four; the prices cannot know, as a share of nothing needs no room."""
    monkeypatch.setattr(served, "MANY", 2)
    instance = instance_of([ShapeRow(1, 2, 3, 0), ShapeRow(1, 2, 3, 1)], [4, 4], [free_pool(4)], [ReplicaLimits(3), ReplicaLimits(3)])
    found = most_served(Search(replace(instance, objective="throughput"), SolveOptions(), RULES))
    assert not isinstance(found, Served)
    assert found.status is Status.INFEASIBLE


def test_a_coarse_search_stays_within_its_word():
    knapsack = Knapsack((5, 7, 11), (9, 9, 9), 123, families=((0, 1, 2),))
    for costs in ([50_000, 70_010, 110_300], [50_001, 69_999, 120_000], [49_000, 71_000, 109_000]):
        exact, near = knapsack.cheapest(costs), replace(knapsack, coarse=6).cheapest(costs)
        assert exact.bound is not None
        assert near.bound is not None
        assert near.counts is not None
        told = sum(cost * count for cost, count in zip(costs, near.counts, strict=True))
        assert near.bound <= exact.bound <= told <= exact.bound * (1 + 2**-5)


def test_a_known_choice_beyond_the_threshold_narrows_nothing():
    """Where the search for the least cost was cut short, the choice it ended with may cost more than any plan in question may."""
    instance = replace(fleet(3), objective="throughput")
    most = greatest(3)
    assert most is not None
    found = fit(build(at_share(instance, most // 2), RULES))
    assert found is not None
    assert found.bound is not None
    dear = tuple(tuple(knapsack.limits) for knapsack in found.parts.knapsacks)
    left = ranges(found.parts, replace(found.bound, exact=0), dear, 0, minimal=False)
    limits = np.concatenate([np.array(knapsack.limits) for knapsack in found.parts.knapsacks])
    assert left.high.tolist() == limits[np.argsort(np.concatenate(found.parts.shapes))].tolist()
    assert not left.low.any()

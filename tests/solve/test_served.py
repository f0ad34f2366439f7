"""The greatest share of all loads, and the least money for what is decided already."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.fleets import instance as large_fleet
from benchmarks.scale import recheck
from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.instance import Instance
from planner.solve.model import build
from planner.solve.objectives import decide, least_threshold
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES
from planner.solve.search import Search
from planner.solve.served import most_served
from planner.solve.shares import at_share, by_shares
from planner.solve.stages import expression
from tests.solve.fleets import ShapeRow, free_pool, instance_of
from tests.solve.test_narrowing import fleet


def stages_alone(instance: Instance, names: tuple[str, ...]) -> list[int] | None:
    """Least values of stages one after another, each proved over all shapes by the program in which the share is a variable."""
    model, found = build(instance, RULES), []
    for name in names:
        result = cpsat.minimise(model.program, expression(model, name), cpsat.Limits(8.0))
        if result.objective is None:
            return None
        assert result.status is Status.OPTIMAL
        found.append(result.objective)
        model.program.add_row("fixed", expression(model, name), upper=result.objective)
    return found


def assert_throughput_is_exact(seed: int) -> bool:
    instance = replace(fleet(seed), objective="throughput")
    expected = stages_alone(instance, ("throughput", "cost"))
    decision = decide(instance, SolveOptions(), RULES)
    if expected is None:
        assert decision.status is Status.INFEASIBLE
        return False
    assert decision.status is Status.OPTIMAL
    told = {stage.name: stage.value for stage in decision.stages}
    assert [told["throughput"], told["cost"]] == expected
    return True


def test_the_greatest_share_and_its_least_money_are_those_of_the_whole_program():
    assert sum(assert_throughput_is_exact(seed) for seed in range(25)) >= 15


@pytest.mark.thorough
def test_the_greatest_share_many_times():
    assert sum(assert_throughput_is_exact(seed) for seed in range(2_000, 2_250)) >= 150


def assert_latency_is_exact(seed: int) -> bool:
    """The least worst time that some plan keeps, by asking about every threshold; then the least money within it."""
    instance = replace(fleet(seed), objective="latency")
    decision = decide(instance, SolveOptions(), RULES)
    for threshold in sorted(set(instance.shapes.tpot.tolist())):
        inside = replace(instance.keep(instance.shapes.tpot <= threshold), objective="cost")
        asked = set(inside.shapes.deployment.tolist())
        cheapest = stages_alone(inside, ("cost",)) if len(asked) == inside.deployments else None
        if cheapest is not None:
            told = {stage.name: stage.value for stage in decision.stages}
            assert decision.status is Status.OPTIMAL
            assert (told["latency"], [told["cost"]]) == (threshold, cheapest)
            return True
    assert decision.status is Status.INFEASIBLE
    return False


def test_the_least_time_and_its_least_money_are_those_of_every_threshold():
    assert sum(assert_latency_is_exact(seed) for seed in range(25)) >= 12


@pytest.mark.thorough
def test_the_least_time_many_times():
    assert sum(assert_latency_is_exact(seed) for seed in range(2_000, 2_250)) >= 120


@pytest.mark.parametrize("objective", ["latency", "throughput", "gpus"])
def test_large_fleets_are_answered_and_placed(objective):
    instance = replace(large_fleet(1_024, 5, 2), objective=objective)
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.model is not None
    stage = decision.stages[0]
    assert stage.name == objective
    assert stage.bound is not None
    assert stage.bound <= stage.value
    money = next(stage for stage in decision.stages if stage.name == "cost")
    assert money.bound is not None
    placed = place(decision.model, decision.values)
    recheck(decision.model.instance, placed, stage.value, objective)


def test_an_unproved_share_keeps_its_bound_and_says_so(monkeypatch):
    """Without effort for any question, the plan of the first run stays, with the bound that was proved."""
    instance = replace(large_fleet(1_024, 20, 1), objective="throughput")
    monkeypatch.setattr("planner.solve.served.STEP_SHARE", 1e-6)
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.status is Status.FEASIBLE
    assert decision.stopped_by == "effort"
    assert decision.stages[0].bound is not None
    assert decision.stages[0].bound < decision.stages[0].value < 0


def test_a_share_is_a_load_and_what_a_replica_serves_a_share():
    instance = replace(instance_of([ShapeRow(1, 2, 3)], [4], [free_pool(8)]), objective="throughput")
    asked = at_share(instance, 1_500_000)
    assert asked.objective == "cost"
    assert asked.loads.tolist() == [1_500_000]
    assert asked.shapes.capacity.tolist() == instance.shapes.share.tolist() == [500_000]
    found = most_served(Search(instance, SolveOptions(), RULES))
    # Eight GPUs, two units each, for a load of four.
    assert (found.share, found.bound, found.counts) == (4_000_000, 4_000_000, {0: 8})


def test_rules_about_places_are_left_to_the_program_with_the_share():
    instance = instance_of([ShapeRow(1, 2, 3)], [4], [free_pool(8)])
    assert by_shares(instance)
    assert not by_shares(replace(instance, rules=(instance.rules_of(0),)))


def test_a_known_plan_is_the_largest_threshold_asked_about(monkeypatch):
    """All shapes share one time to first token: the plan that is known proves it, and nothing is solved."""
    instance = replace(fleet(5), objective="latency")
    search = Search(instance, SolveOptions(), RULES)
    first = least_threshold(search, instance, "latency", instance.shapes.tpot)
    monkeypatch.setattr(cpsat, "minimise", lambda *_: pytest.fail("nothing is left to ask"))
    second = least_threshold(search, first.within, "first_token", np.full(len(first.within.shapes), 7), first)
    assert (second.value, second.bound) == (7, 7)
    assert second.counts == first.counts

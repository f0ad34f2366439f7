"""The fewest GPUs by deployments, then the least money of so many."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.fleets import instance as large_fleet
from benchmarks.scale import recheck
from planner.plan.outcome import Status
from planner.solve import fewest as fewest_module
from planner.solve import objectives
from planner.solve.dominance import worth_keeping
from planner.solve.fewest import fewest
from planner.solve.instance import Instance, Spread
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES
from planner.solve.search import Search
from tests.solve.fleets import ShapeRow, free_pool, instance_of
from tests.solve.test_narrowing import fleet, stage_by_stage


def asked(seed: int) -> Instance:
    return replace(fleet(seed), objective="gpus")


def assert_fewest_is_exact(seed: int) -> bool:
    """The number of GPUs and the money are those of the whole program where they are proved, and never beyond its bounds."""
    instance = asked(seed)
    expected = stage_by_stage(instance)
    decision = decide(instance, SolveOptions(), RULES)
    if expected is None:
        assert decision.status is Status.INFEASIBLE
        return False
    gpus, money = decision.stages[0], decision.stages[1]
    assert (gpus.name, money.name) == ("gpus", "cost")
    assert gpus.bound is not None
    assert gpus.bound <= expected[0] <= gpus.value
    if gpus.bound < gpus.value:
        assert decision.status is Status.FEASIBLE
        return False
    assert decision.status is Status.OPTIMAL
    assert money.bound is not None
    assert money.bound <= expected[1] <= money.value
    return money.bound == money.value


@pytest.fixture
def _few_are_many(monkeypatch):
    monkeypatch.setattr(objectives, "MANY", 2)


@pytest.mark.usefixtures("_few_are_many")
def test_the_fewest_gpus_and_their_least_money_are_those_of_the_whole_program():
    assert sum(assert_fewest_is_exact(seed) for seed in range(20)) >= 12


@pytest.mark.thorough
@pytest.mark.usefixtures("_few_are_many")
def test_the_fewest_gpus_many_times():
    assert sum(assert_fewest_is_exact(seed) for seed in range(5_000, 5_250)) >= 150


def test_ten_deployments_are_proved_with_their_money():
    instance = replace(large_fleet(256, 10, 2), objective="gpus")
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.model is not None
    gpus, money = decision.stages[:2]
    assert decision.status is Status.OPTIMAL
    assert gpus.bound == gpus.value
    assert money.bound == money.value
    recheck(decision.model.instance, place(decision.model, decision.values), gpus.value, "gpus")


def test_where_no_plan_is_near_the_bound_the_program_as_a_whole_is_left_to_answer(monkeypatch):
    instance = replace(large_fleet(256, 10, 2), objective="gpus")
    needed = instance.keep(worth_keeping(instance, ties=False))
    assert fewest(Search(instance, SolveOptions(), RULES), needed) is not None
    monkeypatch.setattr(fewest_module, "TRIES", 0)
    assert fewest(Search(instance, SolveOptions(), RULES), needed) is None
    assert decide(instance, SolveOptions(), RULES).stages[0].value == 160


@pytest.mark.usefixtures("_few_are_many")
def test_the_fewest_gpus_bind_the_money_after_them():
    """A replica of two GPUs serves as much as three cheaper ones of one GPU: the dear one is told, as it has fewer GPUs."""
    rows = [row for deployment in range(2) for row in (ShapeRow(2, 3, 9, deployment), ShapeRow(1, 1, 1, deployment))]
    instance = replace(instance_of(rows, [3, 3], [free_pool(8)]), objective="gpus")
    decision = decide(instance, SolveOptions(), RULES)
    assert [(stage.name, stage.value) for stage in decision.stages[:2]] == [("gpus", 4), ("cost", 18)]
    cheap = decide(replace(instance, objective="cost"), SolveOptions(), RULES)
    assert cheap.stages[0].value == 6


def test_rules_about_places_are_another_question(monkeypatch):
    """`spread` goes the way that counts places, however many deployments there are."""
    monkeypatch.setattr(objectives, "MANY", 2)
    monkeypatch.setattr(objectives, "fewest", lambda *_: pytest.fail("not asked with rules"))
    instance = asked(5)
    rules = tuple(replace(instance.rules_of(number), spread=Spread("node", 8)) for number in range(instance.deployments))
    assert decide(replace(instance, rules=rules), SolveOptions(), RULES).status is not Status.UNKNOWN

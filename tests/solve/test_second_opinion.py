"""Two solvers and two ways into one of them give one answer; impossible is said only after a second check."""

from __future__ import annotations

import pytest

from planner.plan.outcome import Status
from planner.solve import confirm, cpsat, highs
from planner.solve.model import build
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.program import Program
from planner.solve.result import Result, better
from planner.solve.rules import RULES
from planner.solve.search import Search, expression
from tests.solve.fleets import ShapeRow, free_pool, instance_of, random_instance

EFFORT = cpsat.Limits(4.0)


def assert_solvers_agree(seed: int) -> bool:
    model = build(random_instance(seed, "cost"), RULES)
    first = cpsat.minimise(model.program, model.cost, EFFORT)
    second = highs.minimise(model.program, model.cost)
    assert (first.status, first.objective) == (second.status, second.objective)
    assert first.status in {Status.OPTIMAL, Status.INFEASIBLE}
    return first.status is Status.OPTIMAL


def test_highs_equals_cp_sat():
    assert sum(assert_solvers_agree(seed) for seed in range(60)) >= 15


@pytest.mark.parametrize(("serves", "found"), [(2 * 10**10, Status.OPTIMAL), (2 * 10**10 - 1, Status.INFEASIBLE)])
def test_highs_counts_what_is_small_beside_its_row(serves: int, found: Status):
    """Loads in millionths beside one another: the greatest loss counts for a billionth of a replica, and is not nothing."""
    program = Program()
    here, there, loss = program.add_variable(0, 2), program.add_variable(0, 1), program.add_variable(0, 10**12)
    for site in (here, there):
        program.add_row("resilience", {site: serves, loss: -1}, upper=0)
    program.add_row(
        "resilience", {here: serves, there: serves, loss: -1}, lower=2 * 10**10 - 10**4 if found is Status.OPTIMAL else 3 * serves
    )
    assert highs.minimise(program, {here: 1, there: 1}).status is found


def test_what_highs_alone_calls_impossible_is_no_answer(monkeypatch):
    """HiGHS errs and CP-SAT has not decided: nobody is told that there is no plan, on the word of either twice."""
    instance = instance_of([ShapeRow(4)], [2], [free_pool(8)])
    model = build(instance, RULES)
    monkeypatch.setattr(highs, "minimise", lambda *_, **__: Result(Status.INFEASIBLE))
    real = cpsat.minimise

    def idle(program: Program, objective, *rest):
        return Result(Status.UNKNOWN, stopped_by="effort") if objective == model.cost else real(program, objective, *rest)

    monkeypatch.setattr(cpsat, "minimise", idle)
    monkeypatch.setattr(Search, "_start", lambda *_: None)
    result = Search(instance, SolveOptions(), RULES).primary("cost", model, expression(model, "cost"))
    assert result.status is Status.FEASIBLE
    assert result.values == (2,)


@pytest.mark.thorough
def test_highs_equals_cp_sat_often():
    assert sum(assert_solvers_agree(seed) for seed in range(60, 400)) >= 100


@pytest.mark.parametrize("seed", range(12))
def test_both_ways_into_the_solver_give_one_answer(seed):
    model = build(random_instance(seed, "cost"), RULES)
    direct = cpsat.call_extension(model.program, model.cost, EFFORT)
    layered = cpsat.call_modelling_layer(model.program, model.cost, EFFORT)
    assert direct is not None
    assert (direct.status, direct.values) == (layered.status, layered.values)


def test_without_the_extension_the_modelling_layer_answers(monkeypatch):
    monkeypatch.setattr(cpsat, "call_extension", lambda *_: None)
    decision = decide(instance_of([ShapeRow(4)], [2], [free_pool(8)]), SolveOptions(), RULES)
    assert decision.counts == (2,)


@pytest.mark.parametrize("installed", [True, False])
def test_impossible_is_confirmed(installed, monkeypatch):
    monkeypatch.setattr(highs, "available", lambda: installed)
    model = build(instance_of([ShapeRow(4)], [3], [free_pool(8)]), RULES)
    assert confirm.impossible(model.program, EFFORT).status is Status.INFEASIBLE


@pytest.mark.parametrize("installed", [True, False])
def test_a_false_alarm_becomes_a_plan(installed, monkeypatch):
    """CP-SAT claims a program with a solution is impossible: the second check finds the solution and the plan is called feasible."""
    monkeypatch.setattr(highs, "available", lambda: installed)
    instance = instance_of([ShapeRow(4)], [2], [free_pool(8)])
    model = build(instance, RULES)
    real = cpsat.minimise

    def lying(program: Program, objective, *rest):
        return Result(Status.INFEASIBLE) if objective == model.cost else real(program, objective, *rest)

    monkeypatch.setattr(cpsat, "minimise", lying)
    result = Search(instance, SolveOptions(), RULES).primary("cost", model, expression(model, "cost"))
    assert result.status is Status.FEASIBLE
    assert result.values == (2,)
    assert result.bound is None


def test_an_undecided_second_check_is_unknown(monkeypatch):
    monkeypatch.setattr(highs, "available", lambda: False)
    monkeypatch.setattr(confirm, "elastic", lambda *_: Result(Status.UNKNOWN, stopped_by="effort"))
    model = build(instance_of([ShapeRow(4)], [3], [free_pool(8)]), RULES)
    assert confirm.impossible(model.program, EFFORT).status is Status.UNKNOWN


def test_the_better_plan_and_the_better_bound_win():
    first = Result(Status.FEASIBLE, (1,), 10, 7, "effort")
    second = Result(Status.FEASIBLE, (2,), 12, 9, "effort")
    assert better(first, second) == Result(Status.FEASIBLE, (1,), 10, 9, "effort")
    assert better(second, first) == Result(Status.FEASIBLE, (1,), 10, 9, "effort")
    closed = better(first, Result(Status.UNKNOWN, bound=10, stopped_by="effort"))
    assert (closed.status, closed.bound, closed.stopped_by) == (Status.OPTIMAL, 10, None)


def test_highs_says_nothing_on_standard_output(capfd):
    model = build(instance_of([ShapeRow(4)], [2], [free_pool(8)]), RULES)
    highs.minimise(model.program, model.cost)
    assert capfd.readouterr().out == ""

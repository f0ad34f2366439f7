"""Status, bound and gap say what is proved and no more."""

from __future__ import annotations

import random

from planner.plan.outcome import Status
from planner.solve import cpsat, highs, search
from planner.solve.answer import told
from planner.solve.instance import Instance
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.result import Result
from planner.solve.rules import RULES
from planner.solve.search import Decision, Stage
from tests.solve.fleets import ShapeRow, free_pool, instance_of
from tests.solve.placed import assert_placed


def hard(deployments: int = 14) -> Instance:
    """Many covering knapsacks on a fleet with holes: nothing that a moment proves."""
    draw = random.Random(5)
    pools = [free_pool(*(draw.randint(3, 8) for _ in range(60))) for _ in range(3)]
    rows = [
        ShapeRow(
            size := draw.choice([1, 2, 4, 8]),
            draw.randint(70, 130) * size,
            draw.randint(7_000, 13_000) * size,
            deployment,
            draw.randrange(3),
        )
        for deployment in range(deployments)
        for _ in range(7)
    ]
    return instance_of(rows, [draw.randint(2_000, 9_000) for _ in range(deployments)], pools)


def test_a_limit_reached_is_told_with_bound_and_gap():
    instance = hard()
    decision = decide(instance, SolveOptions(effort=0.002), RULES)
    assert decision.model is not None
    stage = decision.stages[0]
    assert stage.bound is None or stage.bound <= stage.value
    if decision.status is Status.OPTIMAL:
        assert stage.bound == stage.value
    else:
        assert decision.status is Status.FEASIBLE
        assert decision.stopped_by == "effort"
    assert_placed(decision.model.instance, place(decision.model, decision.values), decision.counts)


def test_a_bound_proved_early_is_never_above_the_optimum():
    early = decide(hard(), SolveOptions(effort=0.002), RULES).stages[0]
    late = decide(hard(), SolveOptions(), RULES).stages[0]
    assert late.value <= early.value
    assert early.bound is not None
    assert early.bound <= late.value


def test_greedy_answers_when_no_solver_does(monkeypatch):
    instance = hard(4)
    monkeypatch.setattr(cpsat, "minimise", lambda *_, **__: Result(Status.UNKNOWN, stopped_by="effort"))
    monkeypatch.setattr(highs, "available", lambda: False)
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.status is Status.FEASIBLE
    assert decision.stopped_by == "effort"
    assert decision.model is not None
    assert decision.model.program.violated(decision.values) == ()


def test_unknown_has_no_value(monkeypatch):
    monkeypatch.setattr(cpsat, "minimise", lambda *_, **__: Result(Status.UNKNOWN, stopped_by="effort"))
    monkeypatch.setattr(highs, "available", lambda: False)
    decision = decide(instance_of([ShapeRow(4)], [3], [free_pool(8)]), SolveOptions(), RULES)
    assert (decision.status, decision.model, decision.stages, decision.stopped_by) == (Status.UNKNOWN, None, [], "effort")


def test_a_gap_limit_is_no_proof():
    instance = hard()
    decision = decide(instance, SolveOptions(gap=0.5), RULES)
    stage = decision.stages[0]
    assert stage.bound is not None
    assert (decision.status is Status.OPTIMAL) == (stage.bound == stage.value)
    if decision.status is Status.FEASIBLE:
        assert decision.stopped_by == "gap"


def test_no_time_is_told():
    decision = decide(hard(), SolveOptions(time_limit=0.0), RULES)
    assert decision.status in {Status.UNKNOWN, Status.FEASIBLE}
    assert decision.stopped_by == "time"


def test_gap_is_the_distance_to_the_bound():
    decision = Decision(Status.FEASIBLE, stages=[Stage("cost", 24_000_000, 18_000_000), Stage("communication", 0, None)])
    cost, communication, scopes = told(decision, 3, "$/h")
    assert (cost.value, cost.bound, cost.gap, cost.unit) == (24.0, 18.0, 0.25, "$/h")
    assert (communication.value, communication.bound, communication.gap) == (0.0, 0.0, 0.0)
    assert (scopes.value, scopes.bound, scopes.gap) == (3.0, 0.0, 1.0)


def test_an_interrupt_ends_the_stages(monkeypatch):
    """Ctrl-C is caught by the solver, which returns what it has: the plan is told as interrupted and no further stage starts."""
    instance = instance_of([ShapeRow(4), ShapeRow(8, capacity=2)], [2], [free_pool(8, 8)])
    calls = []

    def interrupted(program, objective, *_):
        calls.append(objective)
        return Result(Status.FEASIBLE, (2, 0), 2, 1, "interrupt")

    monkeypatch.setattr(cpsat, "minimise", interrupted)
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.stopped_by == "interrupt"
    assert [stage.name for stage in decision.stages] == ["cost"]
    assert len(calls) == 1


def test_ctrl_c_during_python_work_keeps_the_best_plan(monkeypatch):
    """Between runs of the solver an interrupt arrives as an exception: what was found so far is kept and told as interrupted."""
    monkeypatch.setattr(search, "take_apart", raise_interrupt)
    decision = decide(hard(), SolveOptions(), RULES)
    assert decision.status is Status.FEASIBLE
    assert decision.stopped_by == "interrupt"
    assert [stage.name for stage in decision.stages] == ["cost"]


def raise_interrupt(*_):
    raise KeyboardInterrupt

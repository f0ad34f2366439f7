"""`solve` from problem, fabric and menu to ranks on GPUs."""

from __future__ import annotations

import pytest

from planner.plan.outcome import Status
from planner.plan.shape import Degrees
from planner.solve import Progress, SolveOptions, solve
from tests.solve.fabrics import HGX, fabric_of, hgx_fabric, problem_of, shape_of

TP8 = shape_of(Degrees(8), 32, 24.0)
TP8_PP2 = shape_of(Degrees(8, 2), 80, 48.0, "leaf", 2)


def test_one_node_serves_the_load():
    outcome = solve(problem_of(), hgx_fabric(), [TP8, TP8_PP2], [32.0], SolveOptions())
    assert outcome.status is Status.OPTIMAL
    assert outcome.stopped_by is None
    assert outcome.objective is not None
    assert (outcome.objective.name, outcome.objective.value, outcome.objective.bound, outcome.objective.gap) == ("cost", 24.0, 24.0, 0.0)
    assert outcome.objective.unit == "$/h"
    (replica,) = outcome.replicas
    assert replica.shape is TP8
    assert [(rank.rank, rank.tp_rank, rank.node, rank.gpu) for rank in replica.ranks] == [(n, n, "h100-01", n) for n in range(8)]
    assert {rank.scope for rank in replica.ranks} == {"h100-01/nvlink"}


def test_secondary_objectives_come_in_order():
    outcome = solve(problem_of(), hgx_fabric(), [TP8, TP8_PP2], [32.0], SolveOptions())
    assert [(told.name, told.value, told.bound, told.unit) for told in outcome.secondary] == [
        ("token_time", 0.03, 0.03, "s"),
        ("communication", 0.001, 0.001, "s"),
        ("whole_scopes", 1.0, 1.0, "scopes"),
    ]


def test_a_pipeline_takes_one_node_a_stage():
    outcome = solve(problem_of(), hgx_fabric(), [TP8_PP2], [80.0], SolveOptions())
    (replica,) = outcome.replicas
    assert [(rank.stage, rank.tp_rank, rank.node, rank.gpu) for rank in replica.ranks] == [
        (rank // 8, rank % 8, f"h100-0{rank // 8 + 1}", rank % 8) for rank in range(16)
    ]


def test_taken_gpus_stay_taken():
    fabric = fabric_of([{"name": "h100-[01-02]", **HGX, "leaf": "leaf-1", "price": "$24/h"}], taken=["h100-01:[0-1]", "h100-01:5"])
    outcome = solve(problem_of(), fabric, [shape_of(Degrees(4), 32, 12.0)], [32.0], SolveOptions())
    (replica,) = outcome.replicas
    assert [(rank.node, rank.gpu) for rank in replica.ranks] == [("h100-01", gpu) for gpu in (2, 3, 4, 6)]


def test_no_shape_is_no_plan():
    outcome = solve(problem_of(), hgx_fabric(), [], [32.0], SolveOptions())
    assert outcome.status is Status.INFEASIBLE
    assert outcome.objective is None
    assert outcome.replicas == ()


def test_too_small_a_fleet_is_impossible():
    outcome = solve(problem_of(), hgx_fabric(), [TP8], [65.0], SolveOptions())
    assert outcome.status is Status.INFEASIBLE
    assert outcome.objective is None


@pytest.mark.parametrize(
    ("objective", "value", "unit", "degrees"),
    [
        ("cost", 12.0, "$/h", Degrees(4)),
        ("gpus", 4.0, "GPUs", Degrees(4)),
        ("latency", 0.02, "s", Degrees(8)),
        ("throughput", 4.0, "of the load", Degrees(4)),
    ],
)
def test_each_objective_speaks_its_unit(objective, value, unit, degrees):
    shapes = [shape_of(Degrees(8), 40, 24.0, tpot=0.02), shape_of(Degrees(4), 32, 12.0, tpot=0.04)]
    outcome = solve(problem_of(objective), hgx_fabric(), shapes, [32.0], SolveOptions())
    assert outcome.objective is not None
    assert (outcome.objective.value, outcome.objective.unit, outcome.objective.gap) == (value, unit, 0.0)
    assert {replica.shape.degrees for replica in outcome.replicas} == {degrees}


def test_latency_breaks_ties_by_money():
    """Equal worst times: the dearer plan with more replicas is not taken."""
    shapes = [shape_of(Degrees(8), 32, 24.0, tpot=0.02)]
    outcome = solve(problem_of("latency"), hgx_fabric(), shapes, [32.0], SolveOptions())
    assert len(outcome.replicas) == 1
    assert [told.name for told in outcome.secondary] == ["first_token", "cost", "token_time", "communication", "whole_scopes"]


def test_budget_and_replicas_of_the_problem_count():
    limited = problem_of(budget={"per_hour": "$30/h"}, deployment_0={"replicas": {"min": 2}})
    assert solve(limited, hgx_fabric(), [TP8], [32.0], SolveOptions()).status is Status.INFEASIBLE
    wide = problem_of(budget={"per_hour": "$48/h"}, deployment_0={"replicas": {"min": 2}})
    assert len(solve(wide, hgx_fabric(), [TP8], [32.0], SolveOptions()).replicas) == 2


def test_whole_nodes_are_billed_whole():
    fabric = hgx_fabric(billing="node")
    outcome = solve(problem_of(), fabric, [shape_of(Degrees(4), 32, 12.0)], [32.0], SolveOptions())
    assert outcome.objective is not None
    assert outcome.objective.value == 24.0


def test_progress_is_told():
    seen: list[Progress] = []
    solve(problem_of(), hgx_fabric(), [TP8, TP8_PP2], [40.0], SolveOptions(progress=seen.append))
    assert {progress.stage for progress in seen} >= {"cost"}
    assert any(progress.incumbent is not None for progress in seen)


def test_same_input_same_outcome():
    shapes = [TP8, TP8_PP2, shape_of(Degrees(4, 2), 30, 24.0, "domain"), shape_of(Degrees(4), 12, 12.0)]
    fabric = hgx_fabric("h100-[01-16]")
    outcomes = {repr(solve(problem_of(), fabric, shapes, [220.0], SolveOptions())) for _ in range(3)}
    assert len(outcomes) == 1

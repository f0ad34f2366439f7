"""When nothing fits, the smallest change that would help is named."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.plan.shape import Degrees
from planner.solve import SolveOptions, cpsat, solve
from planner.solve.instance import Budget, GpuBudget
from planner.solve.repair import Added, repairs
from planner.solve.rules import RULES
from tests.solve.fabrics import HGX, fabric_of, hgx_fabric, problem_of, shape_of
from tests.solve.fleets import ScopeRow, ShapeRow, free_pool, instance_of, pool_of

EFFORT = cpsat.Limits(1.0)
TP8 = shape_of(Degrees(8), 32, 24.0)


def said(outcome):
    assert outcome.status is Status.INFEASIBLE
    return {diagnostic.code: f"{diagnostic.message}; {diagnostic.hint}" for diagnostic in outcome.diagnostics}


def test_budget_that_would_do():
    found = said(solve(problem_of(budget={"per_hour": "$30/h"}), hgx_fabric(), [TP8], [64.0], SolveOptions()))
    assert set(found) == {"BUDGET_EXCEEDED"}
    assert "48" in found["BUDGET_EXCEEDED"]
    assert "30" in found["BUDGET_EXCEEDED"]


def test_gpus_of_a_type_that_would_do():
    problem = problem_of(budget={"gpus": {"h100-sxm-80gb": 8}})
    found = said(solve(problem, hgx_fabric(), [TP8], [64.0], SolveOptions()))
    assert found == {"GPU_BUDGET_EXCEEDED": "the smallest plan uses 16 h100-sxm-80gb GPUs, the budget allows 8; allow 16 h100-sxm-80gb"}


def test_share_and_nodes_that_would_do():
    outcome = solve(problem_of(), hgx_fabric(), [TP8], [128.0], SolveOptions())
    messages = [diagnostic.message for diagnostic in outcome.diagnostics]
    assert messages == [
        "the free GPUs serve 50.0 % of the load and no more",
        "2 more empty h100-sxm-80gb nodes (16 GPUs) would do",
    ]


def test_gpus_to_free_are_named():
    fabric = fabric_of([{"name": "h100-[01-02]", **HGX, "leaf": "leaf-1", "price": "$24/h"}], taken=["h100-01:[0-4]", "h100-02:[0-1]"])
    outcome = solve(problem_of(), fabric, [TP8], [32.0], SolveOptions())
    hints = [diagnostic.hint for diagnostic in outcome.diagnostics]
    assert hints == ["free 2 in h100-02/nvlink, which has 6 free", "add 1 node of h100-sxm-80gb, $24.00/h for all of it"]


def test_a_deployment_without_shapes_is_left_to_the_menu():
    outcome = solve(problem_of(deployments=2), hgx_fabric(), [TP8], [32.0, 32.0], SolveOptions())
    assert (outcome.status, outcome.diagnostics) == (Status.INFEASIBLE, ())


def test_fewest_gpus_to_free_over_scopes():
    """Groups of 4, 4 and 2 on scopes with 3 and 5 free: one GPU in the first and one in the second."""
    rows = [ShapeRow(4, deployment=0), ShapeRow(2, deployment=1)]
    found = repairs(instance_of(rows, [2, 1], [free_pool(3, 5)]), RULES, EFFORT)
    assert found.freed.total == 2
    assert found.served == 500
    assert found.nodes == (Added(0, 1),)


def test_freed_gpus_serve_pinned_replicas():
    pool = pool_of([ScopeRow(8, 8, 0), ScopeRow(6, 8, 1), ScopeRow(8, 8, 1)])
    rows = [ShapeRow(8, groups=2, container=3)]
    found = repairs(instance_of(rows, [1], [pool]), RULES, EFFORT)
    assert found.freed.places == ((0, 1, 2),)


def test_budget_over_two_types_tells_the_type():
    rows = [ShapeRow(4, pool=0), ShapeRow(8, pool=1)]
    budget = Budget(None, (GpuBudget("a", (0,), 0), GpuBudget("b", (1,), 0)))
    found = repairs(instance_of(rows, [1], [free_pool(4), free_pool(8)], budget=budget), RULES, EFFORT)
    assert found.gpus == ((0, 4),)

"""Real fabrics as the solver's columns."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.plan.shape import Degrees
from planner.solve import SolveOptions, solve
from planner.solve.instance import Container
from planner.solve.reader import natural, read
from tests.solve.fabrics import HGX, fabric_of, hgx_fabric, problem_of, shape_of

PAIRED = {
    "name": "box-[01-02]",
    "gpu": "a40",
    "gpus": 4,
    "scale_up": "nvlink-pairs",
    "pairs": [[0, 1], [2, 3]],
    "price": "$4/h",
}


def test_names_sort_by_their_numbers():
    assert sorted(["node-10", "node-9", "node-2a", "node-2"], key=natural) == ["node-2", "node-2a", "node-9", "node-10"]


def test_scopes_follow_names_not_the_file():
    fabric = fabric_of([{"name": name, **HGX, "leaf": "leaf-1", "price": "$24/h"} for name in ("h100-10", "h100-9")])
    outcome = solve(problem_of(), fabric, [shape_of(Degrees(8), 32, 24.0)], [32.0], SolveOptions())
    assert {rank.node for rank in outcome.replicas[0].ranks} == {"h100-9"}


def test_columns_of_a_shape():
    fabric = hgx_fabric()
    shapes = [shape_of(Degrees(8), 32, 24.0), shape_of(Degrees(8, 2), 80, 48.0, "leaf", 2)]
    instance = read(problem_of(), fabric, shapes, [32.5])
    assert instance.shapes.size.tolist() == [8, 8]
    assert instance.shapes.groups.tolist() == [1, 2]
    assert instance.shapes.container.tolist() == [Container.ANYWHERE, Container.LEAF]
    assert instance.shapes.capacity.tolist() == [32_000_000, 80_000_000]
    assert instance.loads.tolist() == [32_500_000]
    assert instance.shapes.price.tolist() == [24_000_000, 48_000_000]
    assert instance.shapes.comm.tolist() == [1_000_000, 1_000_000]
    assert instance.pools[0].free.tolist() == [8, 8]
    assert instance.priced


def test_one_form_on_two_pools_is_one_shape():
    nodes = [{"name": name, **HGX, "leaf": "leaf-1", "price": price} for name, price in (("h100-01", "$24/h"), ("h100-02", "$30/h"))]
    fabric = fabric_of(nodes)
    shapes = [shape_of(Degrees(8), 32, 24.0), shape_of(Degrees(8), 32, 30.0, pool=1), shape_of(Degrees(4), 9, 12.0)]
    problem = problem_of(deployment_0={"replicas": {"one_shape": True}})
    assert read(problem, fabric, shapes, [64.0]).shapes.form.tolist() == [0, 0, 1]
    outcome = solve(problem, fabric, shapes, [64.0], SolveOptions())
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective is not None
    assert outcome.objective.value == 54.0


def test_budget_by_type_counts_the_pools_of_that_type():
    problem = problem_of(budget={"gpus": {"h100-sxm-80gb": 8}})
    shapes = [shape_of(Degrees(8), 32, 24.0)]
    assert solve(problem, hgx_fabric(), shapes, [32.0], SolveOptions()).status is Status.OPTIMAL
    assert solve(problem, hgx_fabric(), shapes, [33.0], SolveOptions()).status is Status.INFEASIBLE

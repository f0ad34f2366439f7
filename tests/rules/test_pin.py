"""Deployments use the GPUs they may."""

from __future__ import annotations

import pytest

from planner.plan.outcome import Status
from planner.plan.shape import Degrees
from planner.solve import SolveOptions, solve
from planner.solve.instance import Container, DeploymentRules
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.fabrics import hgx_fabric, problem_of, shape_of
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of

ONLY = DeploymentRules(only="allowed")


def test_only_the_scopes_it_may_use():
    rows = [ShapeRow(4)]
    pool = pool_of([ScopeRow(8, allowed=(1,)), ScopeRow(8, allowed=(0,))])
    assert status(instance_of(rows, [2], [pool], rules=[ONLY])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [3], [pool], rules=[ONLY]), "pin")


def test_another_deployment_may_use_the_rest_and_share_the_first():
    rows = [ShapeRow(4, deployment=0), ShapeRow(4, deployment=1)]
    pool = pool_of([ScopeRow(8, allowed=(1,)), ScopeRow(8, allowed=(0,))])
    rules = [ONLY, DeploymentRules()]
    assert status(instance_of(rows, [1, 3], [pool], rules=rules)) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [3, 1], [pool], rules=rules), "pin")


def test_some_gpus_of_a_scope():
    """Six of eight GPUs may be used: one group of 4 fits, and not two."""
    pool = pool_of([ScopeRow(8, nodes=(6, 2), allowed=(1, 0))])
    assert status(instance_of([ShapeRow(4)], [1], [pool], rules=[ONLY])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of([ShapeRow(4)], [2], [pool], rules=[ONLY]), "pin")


def test_a_pipeline_stays_on_the_allowed_nodes_of_its_leaf():
    rows = [ShapeRow(8, groups=2, container=Container.LEAF)]
    fits = pool_of([ScopeRow(8, leaf=0), ScopeRow(8, leaf=0), ScopeRow(8, leaf=1), ScopeRow(8, leaf=1, allowed=(0,))])
    assert status(instance_of(rows, [1], [fits], rules=[ONLY])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [2], [fits], rules=[ONLY]), "pin")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"pin": "h100-02"}, {("h100-02", gpu) for gpu in range(4)}),
        ({"forbid": ["h100-01", "h100-02:[0,2]"]}, {("h100-02", gpu) for gpu in (1, 3, 4, 5, 6, 7)}),
        ({"pin": "h100-[01-02]:[4-7]", "forbid": "h100-01"}, {("h100-02", gpu) for gpu in (4, 5, 6, 7)}),
    ],
)
def test_names_of_gpus_are_kept_to_the_end(rule, expected):
    problem = problem_of(deployment_0=rule)
    outcome = solve(problem, hgx_fabric(), [shape_of(Degrees(4), 32.0, 12.0)], [32.0], SolveOptions())
    assert outcome.status is Status.OPTIMAL
    used = {(rank.node, rank.gpu) for rank in outcome.replicas[0].ranks}
    assert len(used) == 4
    assert used <= expected


def test_the_rule_is_named_where_it_alone_is_in_the_way():
    problem = problem_of(deployment_0={"forbid": ["h100-01", "h100-02:0"]})
    outcome = solve(problem, hgx_fabric(), [shape_of(Degrees(8), 32.0, 24.0)], [32.0], SolveOptions())
    assert outcome.status is Status.INFEASIBLE
    assert any("name more GPUs in `pin`" in told.hint for told in outcome.diagnostics)

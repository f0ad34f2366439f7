"""What is left after a failure."""

from __future__ import annotations

from fractions import Fraction

from planner.plan.outcome import Status
from planner.solve.instance import Container, DeploymentRules, Resilience
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.rules import RULES
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of


def survive(kind: str, keep: Fraction = Fraction(1)) -> list[DeploymentRules]:
    return [DeploymentRules(resilience=Resilience(kind, keep))]


def test_one_more_replica_than_needed_when_a_gpu_fails():
    rows = [ShapeRow(4, capacity=10)]
    assert status(instance_of(rows, [20], [pool_of([ScopeRow(12, 16)])], rules=survive("gpu"))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [20], [pool_of([ScopeRow(8, 16)])], rules=survive("gpu")), "resilience")


def test_the_largest_replica_is_the_one_to_lose():
    """A replica of 10 beside two of 5: without the large one 10 are left, and 11 are not."""
    rows = [ShapeRow(8, capacity=10), ShapeRow(4, capacity=5)]
    pool = pool_of([ScopeRow(8), ScopeRow(4), ScopeRow(4)])
    assert status(instance_of(rows, [10], [pool], rules=survive("gpu"))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [16], [pool], rules=survive("gpu")), "resilience")


def test_all_replicas_of_a_node_are_lost_together():
    rows = [ShapeRow(4, capacity=10)]
    assert status(instance_of(rows, [20], [pool_of([ScopeRow(8), ScopeRow(8)])], rules=survive("node"))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [20], [pool_of([ScopeRow(8), ScopeRow(4)])], rules=survive("node")), "resilience")


def test_half_the_load_may_be_lost():
    rows = [ShapeRow(4, capacity=10)]
    pool = pool_of([ScopeRow(8, leaf=0), ScopeRow(8, leaf=1)])
    assert status(instance_of(rows, [40], [pool], rules=survive("leaf", Fraction(1, 2)))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [40], [pool], rules=survive("leaf", Fraction(3, 5))), "resilience")


def test_a_pipeline_is_lost_with_either_of_its_nodes():
    """Two pipelines over nodes of one group each touch all four: losing any one node leaves one pipeline."""
    rows = [ShapeRow(4, capacity=10, groups=2, container=Container.ANYWHERE)]
    four = pool_of([ScopeRow(4), ScopeRow(4), ScopeRow(4), ScopeRow(4)])
    assert status(instance_of(rows, [10], [four], rules=survive("node"))) is Status.OPTIMAL
    shared = pool_of([ScopeRow(4), ScopeRow(8), ScopeRow(3)])
    assert_only_this_rule_forbids(instance_of(rows, [10], [pool_of([ScopeRow(4), ScopeRow(12, 16)])], rules=survive("node")), "resilience")
    assert status(instance_of(rows, [10], [shared], rules=survive("node"))) is Status.INFEASIBLE


def test_one_domain_survives_nothing():
    rows = [ShapeRow(4, capacity=10)]
    assert_only_this_rule_forbids(instance_of(rows, [10], [pool_of([ScopeRow(8), ScopeRow(8)])], rules=survive("leaf")), "resilience")


def test_more_replicas_than_the_load_needs_are_found():
    """Ten replicas of 1 in two leaves: five carry the load, ten survive the loss of either leaf, and nine do not."""
    rows = [ShapeRow(1, capacity=1)]
    pool = pool_of([ScopeRow(8, leaf=0), ScopeRow(8, leaf=1)])
    assert decide(instance_of(rows, [5], [pool], rules=survive("leaf")), SolveOptions(), RULES).stages[0].value == 10


def test_greatest_throughput_survives_too():
    """Four replicas of 10 in two nodes: without a node two are left, so twice the load of 10 can be promised, not four times."""
    rows = [ShapeRow(4, capacity=10)]
    pool = pool_of([ScopeRow(8), ScopeRow(8)])
    found = decide(instance_of(rows, [10], [pool], objective="throughput", rules=survive("node")), SolveOptions(), RULES)
    assert found.stages[0].value == -2_000_000

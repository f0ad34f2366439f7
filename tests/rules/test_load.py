"""Replicas carry the load of their deployment."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.solve.instance import ReplicaLimits
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.rules import RULES
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.fleets import ShapeRow, free_pool, instance_of


def test_load_is_covered():
    rows = [ShapeRow(4, capacity=10)]
    assert status(instance_of(rows, [20], [free_pool(8)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [21], [free_pool(8)]), "load")


def test_capacities_of_different_shapes_add_up():
    rows = [ShapeRow(8, capacity=10), ShapeRow(2, capacity=1)]
    assert status(instance_of(rows, [13], [free_pool(8, 6)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [14], [free_pool(8, 6)]), "load")


def test_one_deployment_does_not_carry_for_another():
    rows = [ShapeRow(4, capacity=100, deployment=0), ShapeRow(4, capacity=1, deployment=1)]
    assert status(instance_of(rows, [1, 1], [free_pool(8)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1, 2], [free_pool(8)]), "load")


def test_greatest_throughput_serves_the_loads_in_proportion():
    """Four scopes of 4 for loads 10 and 20 by replicas of 10: one and two replicas serve all; nobody is served more than three halves."""
    rows = [ShapeRow(4, capacity=10, deployment=0), ShapeRow(4, capacity=10, deployment=1)]
    instance = instance_of(rows, [10, 20], [free_pool(4, 4, 4, 4, 4)], objective="throughput")
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.stages[0].value == -1_500_000
    assert decision.counts == (2, 3)


def test_greatest_throughput_serves_everybody_something():
    rows = [ShapeRow(4, capacity=10, deployment=0), ShapeRow(4, capacity=10, deployment=1)]
    instance = instance_of(rows, [10, 20], [free_pool(4)], [ReplicaLimits(), ReplicaLimits()], objective="throughput")
    assert status(instance) is Status.INFEASIBLE

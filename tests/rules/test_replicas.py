"""Replicas are as many and as alike as asked."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.solve.instance import ReplicaLimits
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.fleets import ShapeRow, free_pool, instance_of


def test_at_least_so_many():
    rows = [ShapeRow(4)]
    assert status(instance_of(rows, [1], [free_pool(8)], [ReplicaLimits(2)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1], [free_pool(8)], [ReplicaLimits(3)]), "replicas")


def test_at_most_so_many():
    """Replicas of 4 GPUs carry 3 each, the one of 8 that would do alone does not fit."""
    rows = [ShapeRow(4, capacity=3), ShapeRow(2, capacity=1)]
    assert status(instance_of(rows, [7], [free_pool(4, 4, 4)], [ReplicaLimits(0, 3)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [7], [free_pool(4, 4, 4)], [ReplicaLimits(0, 2)]), "replicas")


def test_all_of_one_shape():
    rows = [ShapeRow(4, capacity=4), ShapeRow(2, capacity=1)]
    assert status(instance_of(rows, [5], [free_pool(8)], [ReplicaLimits(one_shape=True)])) is Status.OPTIMAL
    assert status(instance_of(rows, [5], [free_pool(4, 2)], [ReplicaLimits()])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [5], [free_pool(4, 2)], [ReplicaLimits(one_shape=True)]), "replicas")

"""GPUs kept free for lost replicas."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from planner.plan.outcome import Status
from planner.solve import highs
from planner.solve.instance import Budget, Container, DeploymentRules, Instance, ReplicaLimits, Spread
from planner.solve.model import build
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES
from planner.solve.search import expression
from planner.solve.spare_shapes import with_spares
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.exhaustive import best
from tests.solve.fleets import ScopeRow, ShapeRow, free_pool, instance_of, pool_of, random_instance
from tests.solve.placed import assert_placed


def spared(instance: Instance, *spares: int) -> Instance:
    rules = [replace(instance.rules_of(number), spares=spares[number]) for number in range(instance.deployments)]
    return with_spares(replace(instance, rules=tuple(rules)))


def test_one_more_set_of_gpus_than_replicas():
    rows = [ShapeRow(4, capacity=10)]
    assert status(spared(instance_of(rows, [20], [free_pool(8, 4)]), 1)) is Status.OPTIMAL
    assert_only_this_rule_forbids(spared(instance_of(rows, [20], [free_pool(8, 3)]), 1), "spares")


def test_a_lost_replica_starts_whole_or_not_at_all():
    """Four GPUs are free beside a replica of four, but two by two."""
    rows = [ShapeRow(4, capacity=10)]
    assert_only_this_rule_forbids(spared(instance_of(rows, [10], [free_pool(4, 2, 2)]), 1), "spares")


def test_no_more_spares_than_replicas_that_can_be_lost():
    rows = [ShapeRow(4, capacity=10, price=7)]
    found = decide(spared(instance_of(rows, [10], [free_pool(8, 8)]), 3), SolveOptions(), RULES)
    assert found.stages[0].value == 14
    assert_only_this_rule_forbids(spared(instance_of(rows, [20], [free_pool(8, 4)]), 3), "spares")


def test_spares_stay_together_like_the_replica():
    """A pipeline inside one leaf has its spare inside one leaf."""
    rows = [ShapeRow(4, capacity=10, groups=2, container=Container.LEAF)]
    apart = pool_of([ScopeRow(8, leaf=0), ScopeRow(4, leaf=1), ScopeRow(4, leaf=2)])
    together = pool_of([ScopeRow(8, leaf=0), ScopeRow(4, leaf=1), ScopeRow(4, leaf=1)])
    assert status(spared(instance_of(rows, [10], [together]), 1)) is Status.OPTIMAL
    assert_only_this_rule_forbids(spared(instance_of(rows, [10], [apart]), 1), "spares")


def test_spares_are_paid_for():
    rows = [ShapeRow(4, capacity=10, price=7)]
    enough, short = Budget(per_hour=21), Budget(per_hour=20)
    assert status(spared(instance_of(rows, [20], [free_pool(8, 8)], budget=enough), 1)) is Status.OPTIMAL
    assert_only_this_rule_forbids(spared(instance_of(rows, [20], [free_pool(8, 8)], budget=short), 1), "spares")


def test_spares_are_no_replicas():
    """At most one replica, and one in a node, leave room for a spare in the same node."""
    rows = [ShapeRow(4, capacity=10)]
    rules = [DeploymentRules(spread=Spread("node"))]
    instance = instance_of(rows, [10], [pool_of([ScopeRow(8)])], limits=[ReplicaLimits(0, 1)], rules=rules)
    found = decide(spared(instance, 1), SolveOptions(), RULES)
    assert found.status is Status.OPTIMAL
    assert found.counts == (1, 1)


def test_one_shape_needs_fewer_spares_than_two():
    """Mixed shapes would cost 11 and two spares; two of one shape cost 12 and one spare."""
    rows = [ShapeRow(4, capacity=10, price=6), ShapeRow(2, capacity=5, price=5, pool=1)]
    pools = [free_pool(8, 8), free_pool(8)]
    assert decide(instance_of(rows, [15], pools), SolveOptions(), RULES).stages[0].value == 11
    assert decide(spared(instance_of(rows, [15], pools), 1), SolveOptions(), RULES).stages[0].value == 18


def assert_equals_brute_force(seed: int) -> bool:
    draw = random.Random(seed)
    instance = random_instance(seed, draw.choice(["cost", "cost", "gpus", "latency", "throughput"]))
    if len(instance.shapes) > 3:
        return False
    instance = spared(instance, *(draw.choice([0, 1, 1, 2]) for _ in range(instance.deployments)))
    expected = best(instance)
    decision = decide(instance, SolveOptions(), RULES)
    if expected is None:
        assert decision.status is Status.INFEASIBLE
        return False
    assert decision.status is Status.OPTIMAL
    assert tuple(stage.value for stage in decision.stages if stage.name in {instance.objective, "first_token"}) == expected
    assert decision.model is not None
    assert_placed(decision.model.instance, place(decision.model, decision.values), decision.counts)
    if highs.available() and instance.objective in {"cost", "gpus"}:
        model = build(instance, RULES)
        assert highs.minimise(model.program, expression(model, instance.objective)).objective == expected[0]
    return True


def test_a_sample_of_tiny_fleets():
    assert sum(assert_equals_brute_force(seed) for seed in range(80)) >= 8


@pytest.mark.thorough
def test_many_tiny_fleets():
    assert sum(assert_equals_brute_force(seed) for seed in range(250)) >= 25

"""Limits on replicas and nodes that deployments may use, beside losses to survive: counts first, places after."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from benchmarks.fleets import instance as draw_fleet
from benchmarks.fleets import surviving
from planner.plan.outcome import Status
from planner.solve.instance import Budget, DeploymentRules, GpuBudget, Instance, ReplicaLimits, Resilience, Spread
from planner.solve.survival.freely import place_freely
from planner.solve.survival.places import Room
from planner.solve.survival.question import ask
from planner.solve.survival.search import Survival, survive
from planner.solve.survival.seats import seats
from planner.solve.surviving import large
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of
from tests.solve.located_fleets import located_instance
from tests.solve.test_survival import LIMITS, agrees, assert_survives, assert_survives_near_its_bound, small

HALF = DeploymentRules(resilience=Resilience("leaf", Fraction(1, 2)))


def solved(question: Instance) -> Survival:
    found = survive(question, LIMITS)
    if found.places is not None and found.result.values is not None:
        assert_survives(question, seats(Room(found.question), found.places), found.result.values)
    return found


def two_leaves(shapes: Sequence[ShapeRow], load: int, limits: ReplicaLimits, rules: DeploymentRules = HALF) -> Instance:
    """Two leaves of one scope of 8 GPUs each."""
    return instance_of(shapes, [load], [pool_of([ScopeRow(8, leaf=leaf) for leaf in (0, 1)])], [limits], rules=[rules])


@pytest.mark.parametrize(("minimum", "cost"), [(0, 4), (10, 10), (16, 16), (17, None)])
def test_as_many_replicas_as_asked_at_least(minimum: int, cost: int | None):
    found = solved(two_leaves([ShapeRow(1)], 4, ReplicaLimits(minimum)))
    assert found.result.objective == cost
    assert found.result.status is (Status.INFEASIBLE if cost is None else Status.OPTIMAL)


@pytest.mark.parametrize(("maximum", "cost"), [(8, 8), (4, 10), (3, 10), (2, 10), (1, None)])
def test_as_many_replicas_as_asked_at_most(maximum: int, cost: int | None):
    """Every leaf serves all 4: eight small replicas, or one large one in each leaf, which is dearer."""
    found = solved(
        two_leaves([ShapeRow(1), ShapeRow(4, 4, 5)], 4, ReplicaLimits(0, maximum), DeploymentRules(resilience=Resilience("leaf")))
    )
    assert found.result.objective == cost
    assert found.result.status is (Status.INFEASIBLE if cost is None else Status.OPTIMAL)


@pytest.mark.parametrize(("one_shape", "cost"), [(False, 7), (True, None)])
def test_one_shape_on_one_leaf_cannot_survive(one_shape: bool, cost: int | None):
    """Each of two GPU types has one leaf: what is left of a form when its leaf is lost is nothing."""
    pools = [pool_of([ScopeRow(8, leaf=leaf)], first_node=leaf) for leaf in (0, 1)]
    shapes = [ShapeRow(2, 2, 2, pool=0), ShapeRow(1, 1, 1, pool=1)]
    found = solved(instance_of(shapes, [6], pools, [ReplicaLimits(one_shape=one_shape)], rules=[HALF]))
    assert found.result.objective == cost
    assert found.result.status is (Status.INFEASIBLE if cost is None else Status.OPTIMAL)


def test_the_cheapest_of_the_forms_is_the_one_shape():
    """Every leaf serves 5: mixed by one replica of 3 and two of 1, alone by five of 1 or two of 3."""
    shapes = [ShapeRow(1, 1, 4), ShapeRow(4, 3, 11)]
    assert solved(two_leaves(shapes, 10, ReplicaLimits())).result.objective == 38
    assert solved(two_leaves(shapes, 10, ReplicaLimits(one_shape=True))).result.objective == 40


def three_leaves(allowed: Sequence[int], deployments: int = 1, load: int = 8) -> Instance:
    """Three leaves of 8 GPUs; deployments may use those `allowed` and keep half of their loads."""
    pool = pool_of([ScopeRow(8, leaf=leaf, allowed=(int(leaf in allowed),)) for leaf in range(3)])
    rules = [replace(HALF, only="allowed")] * deployments
    return instance_of([ShapeRow(1, deployment=number) for number in range(deployments)], [load] * deployments, [pool], rules=rules)


@pytest.mark.parametrize(("allowed", "status"), [((0, 1, 2), Status.OPTIMAL), ((0, 2), Status.OPTIMAL), ((1,), Status.INFEASIBLE)])
def test_replicas_stand_where_they_may(allowed: tuple[int, ...], status: Status):
    found = solved(three_leaves(allowed))
    assert found.result.status is status


def test_two_deployments_share_what_they_may_use():
    """Either of them fits into two leaves of 16 GPUs, both of them only while they ask for 16 in all."""
    assert solved(three_leaves((0, 1), 2, 8)).result.objective == 16
    assert solved(three_leaves((0, 1), 2, 9)).result.status is Status.INFEASIBLE
    assert solved(three_leaves((0, 1, 2), 2, 9)).result.objective == 18


@pytest.mark.parametrize(("kind", "most", "cost"), [("leaf", 4, 8), ("leaf", 3, 10), ("leaf", 1, 10), ("node", 2, 8), ("node", 1, 10)])
def test_replicas_keep_apart(kind: str, most: int, cost: int):
    """Two leaves of two nodes each: every leaf serves all 4, by four small replicas or by a large one, which is dearer."""
    pool = pool_of([ScopeRow(4, 4, leaf) for leaf in (0, 0, 1, 1)])
    rules = DeploymentRules(Spread(kind, most), Resilience("leaf"))
    found = solved(instance_of([ShapeRow(1), ShapeRow(4, 4, 5)], [4], [pool], rules=[rules]))
    assert found.result.objective == cost
    alone = instance_of([ShapeRow(1)], [4], [pool], rules=[rules])
    assert solved(alone).result.status is (Status.OPTIMAL if cost == 8 else Status.INFEASIBLE)


@pytest.mark.parametrize(
    ("limits", "spread", "most", "cost"),
    [
        (ReplicaLimits(), None, None, 8),
        (ReplicaLimits(), None, 7, None),
        (ReplicaLimits(9), None, None, 9),
        (ReplicaLimits(0, 7), None, None, 9),
        (ReplicaLimits(), Spread("leaf", 1), None, 10),
        (ReplicaLimits(one_shape=True), None, None, None),
    ],
)
def test_counts_and_places_without_lists(limits: ReplicaLimits, spread: Spread | None, most: int | None, cost: int | None):
    """Every leaf serves all 4; forms that must be one are left to the lists."""
    rules = DeploymentRules(spread, Resilience("leaf"))
    question = two_leaves([ShapeRow(1), ShapeRow(4, 4, 5)], 4, limits, rules)
    room = Room(ask(question))
    found = place_freely(room, 0, most, LIMITS, None)
    assert (None if found is None else found[0]) == cost
    if found is not None:
        assert_survives(question, seats(room, found[2]), tuple(found[1].tolist()))


def test_a_gpu_to_lose_is_left_to_the_lists():
    rules = DeploymentRules(resilience=Resilience("gpu"), only="allowed")
    assert place_freely(Room(ask(two_leaves([ShapeRow(1)], 4, ReplicaLimits(), rules))), 0, None, LIMITS, None) is None
    assert solved(two_leaves([ShapeRow(1)], 4, ReplicaLimits(), rules)).result.objective == 5


def test_a_budget_is_kept_without_lists():
    question = two_leaves([ShapeRow(1), ShapeRow(4, 4, 5)], 4, ReplicaLimits(), DeploymentRules(resilience=Resilience("leaf")))
    for budget, cost in (
        (Budget(8), 8),
        (Budget(7), None),
        (Budget(gpus=(GpuBudget("g", (0,), 8),)), 8),
        (Budget(gpus=(GpuBudget("g", (0,), 7),)), None),
    ):
        found = place_freely(Room(ask(replace(question, budget=budget))), 0, None, LIMITS, None)
        assert (None if found is None else found[0]) == cost


def tiny(seed: int) -> Instance:
    """A tiny fleet with crossing leaves and racks; limits of replicas, spread and allowed nodes beside losses."""
    question = located_instance(seed)
    rules = tuple(replace(rule, may_go_unserved=Fraction(0), priority=0) for rule in question.rules)
    return replace(question, rules=rules)


def dressed(question: Instance, seed: int) -> Instance:
    """The same question with drawn limits, spread and allowed nodes."""
    draw = random.Random(seed)
    limits, rules, shares = [], [], {}
    for deployment in range(question.deployments):
        least, most = draw.choice([0, 0, 2, 5, 9]), draw.choice([None, None, 4, 8, 14])
        limits.append(ReplicaLimits(0 if most is not None and least > most else least, most, draw.random() < 0.2))
        rule = question.rules_of(deployment)
        if draw.random() < 0.35:
            shares[f"allowed {deployment}"] = draw.choice([0.5, 0.7, 0.9])
            rule = replace(rule, only=f"allowed {deployment}")
        if draw.random() < 0.3:
            rule = replace(rule, spread=Spread(draw.choice(["leaf", "node"]), draw.choice([1, 2, 3])))
        rules.append(rule)
    pools = tuple(
        replace(
            pool,
            domains={
                **pool.domains,
                **{kind: tuple((int(draw.random() < share),) for _ in range(len(pool))) for kind, share in shares.items()},
            },
        )
        for pool in question.pools
    )
    return replace(question, limits=tuple(limits), rules=tuple(rules), pools=pools)


def test_agrees_with_the_program_that_counts_every_place_on_tiny_fleets():
    found = Counter(agrees(tiny(seed)) for seed in range(160))
    assert found[Status.OPTIMAL] + found[Status.FEASIBLE] >= 8
    assert found[Status.INFEASIBLE] >= 8


def test_agrees_on_a_small_fleet():
    assert agrees(dressed(small(1), 1)) is Status.OPTIMAL
    assert {agrees(dressed(small(seed), seed)) for seed in (5, 8)} == {Status.INFEASIBLE}


@pytest.mark.thorough
def test_agrees_on_many_fleets():
    assert sum(agrees(tiny(seed)) in {Status.OPTIMAL, Status.FEASIBLE} for seed in range(160, 1_500)) >= 60
    assert sum(agrees(dressed(small(seed), seed)) in {Status.OPTIMAL, Status.FEASIBLE} for seed in range(1, 25)) >= 8


def test_a_thousand_gpus_with_limits_survive_any_leaf():
    """Twenty deployments with four replicas at least, one of them on half of the nodes."""
    question = surviving(draw_fleet(1_024, 20, 3), Fraction(1, 2))
    pools = tuple(
        replace(pool, domains={**pool.domains, "allowed": tuple((int(leaf % 2 == 0),) for leaf in pool.leaf.tolist())})
        for pool in question.pools
    )
    rules = (replace(question.rules[0], only="allowed"), *question.rules[1:])
    question = replace(question, pools=pools, rules=rules, limits=(ReplicaLimits(4),) * question.deployments)
    assert large(question)
    assert_survives_near_its_bound(question)

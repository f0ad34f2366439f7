"""Plans that survive a loss, by counts first and places after: against the program that counts every place, and killed domain by domain."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from benchmarks.fleets import instance as draw_fleet
from benchmarks.fleets import surviving
from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.dominance import worth_keeping
from planner.solve.instance import Budget, Container, DeploymentRules, Instance, ReplicaLimits, Resilience
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.rules import RULES
from planner.solve.search import Search
from planner.solve.seating import Placed
from planner.solve.stages import expression
from planner.solve.survival.fitting import refit
from planner.solve.survival.packing import packable
from planner.solve.survival.places import Places, Room
from planner.solve.survival.question import ask, covered
from planner.solve.survival.search import survive
from planner.solve.survival.seats import seats
from planner.solve.surviving import large
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of
from tests.solve.located_fleets import located_instance
from tests.solve.placed import assert_placed

LIMITS = cpsat.Limits(4.0)


def assert_survives(instance: Instance, placed: object, counts: tuple[int, ...]) -> None:
    """Kill the domains of every deployment one at a time."""
    columns = instance.shapes
    assert isinstance(placed, tuple)
    assert_placed(instance, placed, counts)
    served: Counter[int] = Counter()
    lost: Counter[tuple[int, int]] = Counter()
    for replica in placed:
        deployment = int(columns.deployment[replica.shape])
        served[deployment] += int(columns.capacity[replica.shape])
        rule = instance.rules_of(deployment).resilience
        if rule is not None and rule.kind != "gpu":
            domains = instance.pools[int(columns.pool[replica.shape])].domains[rule.kind]
            for domain in {domains[group.scope][0] for group in replica.groups}:
                lost[deployment, domain] += int(columns.capacity[replica.shape])
    for deployment, load in enumerate(instance.loads.tolist()):
        assert served[deployment] >= load
    for (deployment, _), gone in lost.items():
        rule = instance.rules_of(deployment).resilience
        assert rule is not None
        assert served[deployment] - gone >= rule.keep * int(instance.loads[deployment])
    assert_limits(instance, placed, counts)


def assert_survives_near_its_bound(question: Instance) -> None:
    """Check that a plan is found within 1 % of its bound, and survives."""
    decision = decide(question, SolveOptions(), RULES)
    assert decision.model is not None
    stage = decision.stages[0]
    assert stage.bound is not None
    assert stage.value - stage.bound <= 0.01 * stage.value
    assert_survives(decision.model.instance, decision.placed, decision.counts)


def assert_limits(instance: Instance, placed: tuple[Placed, ...], counts: tuple[int, ...]) -> None:
    """Count the replicas of every deployment, their forms, and those on nodes that it may not use."""
    columns = instance.shapes
    for deployment, limits in enumerate(instance.limits):
        own = instance.of_deployment(deployment)
        number = sum(counts[shape] for shape in own.tolist())
        assert limits.minimum <= number
        assert limits.maximum is None or number <= limits.maximum
        assert not limits.one_shape or len({int(columns.form[shape]) for shape in own.tolist() if counts[shape]}) <= 1
    beside: Counter[tuple[int, int]] = Counter()
    for replica in placed:
        rules = instance.rules_of(int(columns.deployment[replica.shape]))
        only, spread = rules.only, rules.spread
        allowed = instance.pools[int(columns.pool[replica.shape])].domains[only] if only else None
        assert allowed is None or all(allowed[group.scope][0] == 1 for group in replica.groups)
        if spread is not None:
            domains = instance.pools[int(columns.pool[replica.shape])].domains[spread.kind]
            beside.update({(int(columns.deployment[replica.shape]), domains[group.scope][0]) for group in replica.groups})
    for (deployment, _), number in beside.items():
        most = instance.rules_of(deployment).spread
        assert most is not None
        assert number <= most.most


def agrees(question: Instance) -> Status | None:
    """Compare with the program that counts every place; the status where it is covered."""
    question = question.keep(worth_keeping(question, ties=False))
    if not covered(question):
        return None
    search = Search(question, SolveOptions(effort=20.0), RULES)
    model = search.build(question)
    exact = search.primary(question.objective, model, expression(model, question.objective))
    found = survive(question, LIMITS)
    if exact.status is Status.INFEASIBLE:
        assert found.places is None
    if exact.values is not None:
        assert found.result.status is not Status.INFEASIBLE
        assert exact.objective is not None
        assert found.result.bound is None or found.result.bound <= exact.objective
        assert found.result.objective is None or exact.bound is None or found.result.objective >= exact.bound
    if found.places is not None and found.result.values is not None:
        assert_survives(question, seats(Room(found.question), found.places), found.result.values)
    return found.result.status


def tiny(seed: int) -> Instance:
    """A tiny fleet with crossing leaves and racks; only losses are asked about."""
    question = located_instance(seed)
    rules = tuple(DeploymentRules(resilience=rule.resilience) for rule in question.rules)
    return replace(question, limits=tuple(ReplicaLimits() for _ in question.limits), rules=rules)


def small(seed: int) -> Instance:
    draw = random.Random(seed)
    question = surviving(draw_fleet(128, 4, seed, 0.4), Fraction(draw.choice(["1/2", "4/5", "1"])), draw.choice(["leaf", "leaf", "node"]))
    if draw.random() < 0.3:
        # Replicas of several groups may then span leaves.
        question = replace(question, shapes=replace(question.shapes, container=question.shapes.container * 0))
    return question


def test_agrees_with_the_program_that_counts_every_place_on_tiny_fleets():
    found = Counter(agrees(tiny(seed)) for seed in range(90))
    assert found[Status.OPTIMAL] + found[Status.FEASIBLE] >= 5
    assert found[Status.INFEASIBLE] >= 5


def test_agrees_on_a_small_fleet():
    assert {agrees(small(seed)) for seed in (4,)} <= {Status.OPTIMAL, Status.FEASIBLE}


@pytest.mark.thorough
def test_agrees_on_many_fleets():
    assert sum(agrees(tiny(seed)) in {Status.OPTIMAL, Status.FEASIBLE} for seed in range(1_000)) >= 50
    assert sum(agrees(small(seed)) in {Status.OPTIMAL, Status.FEASIBLE} for seed in range(1, 31)) >= 15


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("keep", ["1/2", "4/5"])
def test_a_thousand_gpus_survive_any_leaf_within_four_thousandths(seed: int, keep: str):
    decision = decide(surviving(draw_fleet(1_024, 20, seed), Fraction(keep)), SolveOptions(), RULES)
    assert decision.model is not None
    stage = decision.stages[0]
    assert stage.bound is not None
    assert stage.value - stage.bound <= 0.004 * stage.value
    assert_survives(decision.model.instance, decision.placed, decision.counts)


def test_the_same_question_has_the_same_answer():
    question = surviving(draw_fleet(1_024, 20, 3), Fraction(1, 2))
    assert large(question)
    first, second = (decide(question, SolveOptions(), RULES) for _ in range(2))
    assert first.placed == second.placed
    assert first.stages == second.stages
    assert first.model is not None
    assert_survives(first.model.instance, first.placed, first.counts)


def test_a_leaf_that_holds_everything_cannot_be_lost():
    """Many replicas on one leaf: impossible whatever the counts, and confirmed."""
    pool = pool_of([ScopeRow(8, leaf=0) for _ in range(4)])
    question = instance_of([ShapeRow(1)], [4], [pool], rules=[DeploymentRules(resilience=Resilience("leaf", Fraction(1, 2)))])
    assert survive(question, LIMITS).result.status is Status.INFEASIBLE
    two = pool_of([ScopeRow(8, leaf=leaf) for leaf in (0, 1)])
    assert survive(replace(question, pools=(two,)), LIMITS).result.objective == 4


def test_replicas_over_two_nodes_are_lost_with_either():
    """Groups of 8 on nodes of 8: a replica of two groups touches two nodes, and with one lost the other replica is left."""
    pool = pool_of([ScopeRow(8) for _ in range(4)])
    rules = [DeploymentRules(resilience=Resilience("node", Fraction(1, 2)))]
    question = instance_of([ShapeRow(8, 2, 16, groups=2, container=Container.ANYWHERE)], [4], [pool], rules=rules)
    found = survive(question, LIMITS)
    assert found.result.objective == 32
    assert found.places is not None
    assert len(found.places.spanning) == 2
    assert_survives(question, seats(Room(found.question), found.places), (2,))


def test_a_budget_is_kept():
    pool = pool_of([ScopeRow(8, leaf=leaf) for leaf in (0, 1)])
    rules = [DeploymentRules(resilience=Resilience("leaf"))]
    question = instance_of([ShapeRow(1)], [5], [pool], budget=Budget(10), rules=rules)
    assert survive(question, LIMITS).result.objective == 10
    assert survive(replace(question, budget=Budget(9)), LIMITS).places is None


@pytest.mark.parametrize(
    "change",
    [
        {"objective": "throughput"},
        {"rules": (DeploymentRules(resilience=Resilience("leaf"), may_go_unserved=Fraction(1, 2)),)},
        {"rules": (DeploymentRules(),)},
    ],
)
def test_other_rules_are_left_to_the_whole_program(change: dict[str, object]):
    pool = pool_of([ScopeRow(8, leaf=leaf) for leaf in (0, 1)])
    question = instance_of([ShapeRow(1)], [5], [pool], rules=[DeploymentRules(resilience=Resilience("leaf"))])
    assert covered(question)
    assert not covered(replace(question, **change))


def fits(items: list[int], bins: int, size: int, each: int) -> bool:
    """Every way to give each item a bin."""
    ways = product(range(bins), repeat=len(items))
    return any(
        all(
            sum(item for item, chosen in zip(items, way, strict=True) if chosen == one) <= size and way.count(one) <= each
            for one in range(bins)
        )
        for way in ways
    )


def test_packing_says_no_only_where_there_is_no_way():
    draw = random.Random(5)
    answers = Counter()
    for _ in range(300):
        items = [draw.randint(1, 9) for _ in range(draw.randint(1, 6))]
        bins, size, each = draw.randint(1, 3), draw.randint(5, 16), draw.choice([2, 3, 10**9])
        told = packable(tuple(sorted(Counter(items).items(), reverse=True)), bins, size, each)
        assert told == fits(items, bins, size, each)
        answers[told] += 1
    assert min(answers.values()) >= 30


def test_replicas_that_span_domains_are_placed_by_the_program_too():
    """Three replicas of two nodes each on six nodes: no two of them share one, so that the loss of a node takes one."""
    pool = pool_of([ScopeRow(8) for _ in range(6)])
    rules = [DeploymentRules(resilience=Resilience("node"))]
    question = ask(instance_of([ShapeRow(8, 5, groups=2)], [10], [pool], rules=rules))
    room, counts = Room(question), np.array([3])
    placed = refit(room, counts, Places(missing={0: 3}), 0, LIMITS)
    assert placed is not None
    assert (len(placed.spanning), placed.missing) == (3, {})
    taken = room.used(placed)
    assert int(taken.left[0].min()) >= 0
    assert taken.carried[0].tolist() == [5] * 6
    tight = ask(instance_of([ShapeRow(8, 5, groups=2)], [10], [pool_of([ScopeRow(8) for _ in range(5)])], rules=rules))
    assert refit(Room(tight), counts, Places(missing={0: 3}), 0, LIMITS) is None


@pytest.mark.parametrize(("free", "held", "status"), [((8, 3, 3), (4, 1, 1), Status.INFEASIBLE), ((4, 5, 4), (2, 2, 2), Status.OPTIMAL)])
def test_nodes_with_holes_leave_more_to_the_others(free: tuple[int, ...], held: tuple[int, ...], status: Status):
    """Six replicas, and half of the load left without any one node: evenly two a node go, but where two nodes have room for one each the third holds four."""
    rules = [DeploymentRules(resilience=Resilience("node", Fraction(1, 2)))]
    question = instance_of([ShapeRow(2)], [6], [pool_of([ScopeRow(number) for number in free])], rules=rules)
    assert ask(question).held == (held,)
    assert survive(question, LIMITS).result.status is status


@pytest.mark.thorough
def test_a_tight_fleet_survives_any_node_with_replicas_to_spare():
    """The choices nearest the bound let a node hold two replicas of a model that needs three there: only padded lists have a plan near it."""
    question = surviving(draw_fleet(1_024, 20, 3), Fraction(1), "node")
    assert_survives_near_its_bound(question)

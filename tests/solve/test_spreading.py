"""Replicas that keep apart where places are many: replicas first, places after."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.fleets import instance as draw_fleet
from benchmarks.fleets import surviving
from planner.plan.outcome import Status
from planner.solve.dominance import worth_keeping
from planner.solve.instance import DeploymentRules, Instance, Spread
from planner.solve.objectives import decide, hopeless
from planner.solve.options import SolveOptions
from planner.solve.placement import Placed, place
from planner.solve.rules import RULES
from planner.solve.search import Decision
from planner.solve.spare_shapes import with_spares
from planner.solve.spreading.choosing import chosen_greedily
from planner.solve.spreading.crowded import crowded
from planner.solve.spreading.fractions import Split, areas_of
from planner.solve.spreading.limits import Limits
from planner.solve.spreading.places import all_free, placeable, places_of
from planner.solve.spreading.question import far_apart
from planner.solve.spreading.search import decide_apart
from planner.solve.work import allowance
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of
from tests.solve.located_fleets import located_instance
from tests.solve.placed import assert_placed

OPTIONS = SolveOptions()


def touched(instance: Instance, replica: Placed, kind: str) -> set[int]:
    """Failure domains of a kind in which a placed replica has GPUs."""
    pool = instance.pools[int(instance.shapes.pool[replica.shape])]
    found = set()
    for group in replica.groups:
        labels = pool.domains[kind][group.scope]
        nodes = pool.nodes[group.scope] if pool.nodes and pool.nodes[group.scope] else (int(pool.free[group.scope]),)
        owners = [node for node, free in enumerate(nodes) for _ in range(free)]
        found |= {labels[owners[position]] if len(labels) > 1 else labels[0] for position in group.positions}
    return found


def assert_apart(question: Instance, decision: Decision) -> None:
    """Check every replica's GPUs and that no domain holds too many of a deployment."""
    assert decision.model is not None
    instance = replace(decision.model.instance, rules=question.rules)
    placed = place(decision.model, decision.values) if decision.placed is None else decision.placed
    assert_placed(instance, placed, decision.counts)
    for deployment, rules in enumerate(question.rules):
        if rules.spread is not None:
            # GPUs kept free are no replicas.
            mine = set(instance.serving(deployment).tolist())
            own = [replica for replica in placed if replica.shape in mine]
            held = Counter(label for replica in own for label in touched(instance, replica, rules.spread.kind))
            assert max(held.values(), default=0) <= rules.spread.most


def tiny(seed: int) -> Instance:
    """A tiny fleet whose deployments mostly spread, some with spares, and survive nothing."""
    question, draw = located_instance(seed), random.Random(seed)
    rules = []
    for rule in question.rules:
        drawn = Spread(draw.choice(["node", "leaf", "rack"]), draw.choice([1, 1, 2])) if draw.random() < 0.7 else None
        rules.append(replace(rule, resilience=None, spread=rule.spread or drawn, spares=draw.choice([0, 0, 0, 1])))
    return with_spares(replace(question, rules=tuple(rules)))


def agrees(seed: int) -> Status | None:
    """Compare with the program that counts every place; the status, None where nothing spreads or a deployment has no shape."""
    question = tiny(seed)
    if not any(rule.spread for rule in question.rules) or hopeless(question.keep(worth_keeping(question))):
        return None
    direct, apart = decide(question, OPTIONS, RULES), decide_apart(question, OPTIONS, RULES, decide)
    if direct.status is Status.INFEASIBLE:
        assert apart.model is None
        return apart.status
    assert apart.status in {Status.OPTIMAL, Status.FEASIBLE}
    assert_apart(question, apart)
    known, told = direct.stages[0], apart.stages[0]
    assert told.value >= known.value
    assert (told.bound or 0) <= known.value
    assert apart.status is Status.FEASIBLE or told.value == known.value
    return apart.status


def test_agrees_with_the_program_that_counts_every_place():
    found = Counter(agrees(seed) for seed in range(60))
    assert found[Status.OPTIMAL] >= 20
    assert found[Status.INFEASIBLE] >= 8


@pytest.mark.thorough
def test_agrees_on_many_fleets():
    found = Counter(agrees(seed) for seed in range(60, 1_000))
    assert found[Status.OPTIMAL] >= 350
    assert found[Status.INFEASIBLE] >= 150


def apart(gpus: int, models: int, seed: int, spread: Spread) -> Instance:
    """A synthetic fleet whose deployments all spread; replicas of several groups stay inside a leaf."""
    drawn = surviving(draw_fleet(gpus, models, seed), Fraction(1), spread.kind)
    return replace(drawn, rules=(DeploymentRules(spread),) * drawn.deployments)


@pytest.mark.parametrize(
    ("spread", "cost"), [(Spread("node", 1), 1_577_280_000), (Spread("node", 2), 1_561_100_000), (Spread("leaf", 8), 1_561_100_000)]
)
def test_a_thousand_gpus(spread: Spread, cost: int):
    """One replica a node costs 1 % more than none apart, which is 1,561.10 $/h, and is proved."""
    question = apart(1_024, 5, 1, spread)
    assert far_apart(question)
    decision = decide(question, OPTIONS, RULES)
    assert decision.status is Status.OPTIMAL
    assert decision.stages[0].value == cost
    assert_apart(question, decision)


@pytest.mark.parametrize(("replicas", "status"), [(300, Status.OPTIMAL), (301, Status.INFEASIBLE)])
def test_as_many_replicas_as_there_are_nodes(replicas: int, status: Status):
    """Another deployment fills half of the nodes, so that 300 of 600 are left."""
    rules = [DeploymentRules(Spread("node")), DeploymentRules()]
    question = instance_of([ShapeRow(1), ShapeRow(8, 8, 8, deployment=1)], [replicas, 2_400], [pool_of([ScopeRow(8)] * 600)], rules=rules)
    assert far_apart(question)
    decision = decide(question, OPTIONS, RULES)
    assert decision.status is status
    if status is Status.OPTIMAL:
        assert_apart(question, decision)


@pytest.mark.parametrize(("replicas", "least"), [(200, None), (201, 2), (400, 2), (401, 3)])
def test_who_is_in_the_way(replicas: int, least: int | None):
    """Two deployments on 200 nodes: the first needs so many replicas, the other is in nobody's way."""
    rows = [ShapeRow(1), ShapeRow(1, deployment=1)]
    question = instance_of(rows, [replicas, 150], [pool_of([ScopeRow(8)] * 200)], rules=[DeploymentRules(Spread("node"))] * 2)
    found = [
        (repair.deployment, repair.enough, repair.nearest) for repair in crowded(question, replace(OPTIONS, explain=False), allowance(None))
    ]
    assert found == ([] if least is None else [(0, least, True)])


@pytest.mark.parametrize(("nodes", "status"), [(300, Status.OPTIMAL), (299, Status.INFEASIBLE)])
def test_spares_need_not_keep_apart(nodes: int, status: Status):
    """Three hundred replicas of three GPUs, one a node of eight, and a spare beside one of them."""
    rules = [DeploymentRules(Spread("node"), spares=1)]
    question = with_spares(instance_of([ShapeRow(3, 1, 3)], [300], [pool_of([ScopeRow(8)] * nodes)], rules=rules))
    assert far_apart(question)
    decision = decide(question, OPTIONS, RULES)
    assert decision.status is status
    if status is Status.OPTIMAL:
        assert decision.stages[0].value == 903
        assert_apart(question, decision)


def crowd(draw: random.Random, kind: str) -> Instance:
    """A pool of some nodes with shapes of several deployments, some of which spread."""
    pool = pool_of([ScopeRow(draw.randint(0, 8), leaf=draw.randint(0, 3)) for _ in range(draw.randint(2, 9))])
    deployments = draw.randint(1, 3)
    rows = [
        ShapeRow(draw.choice([1, 2, 3, 4, 6, 8]), deployment=draw.randrange(deployments), groups=draw.choice([1, 1, 1, 2]))
        for _ in range(draw.randint(2, 6))
    ]
    rows += [ShapeRow(1, deployment=number) for number in range(deployments)]
    rules = [DeploymentRules(Spread(kind, draw.randint(1, 3)) if draw.random() < 0.8 else None) for _ in range(deployments)]
    return instance_of(rows, [1] * deployments, [pool], rules=rules)


def some_plan(question: Instance, draw: random.Random) -> np.ndarray:
    """Counts of replicas that stand apart, drawn at random until nothing fits."""
    wanted = [draw.choice([0, 0, 1, 2, 5, 30]) for _ in range(len(question.shapes))]
    places = places_of(question, wanted, all_free(question))
    return np.array([len(places.spots.get(shape, ())) for shape in range(len(question.shapes))])


@pytest.mark.parametrize("kind", ["node", "leaf"])
def test_every_plan_keeps_every_limit(kind: str):
    """Limits drawn from counts that break them hold for whatever can be placed."""
    limits = 0
    for seed in range(16):
        draw = random.Random(seed)
        question = crowd(draw, kind)
        if not any(rule.spread for rule in question.rules):
            continue
        plans = [some_plan(question, draw) for _ in range(12)]
        for _ in range(6):
            counts = [draw.choice([0, 0, 1, 4, 12]) for _ in range(len(question.shapes))]
            found = list(Limits(question).broken(counts))
            found += [limit for area in areas_of(question, kind, [0]) if (limit := Split(question, area).broken(counts)) is not None]
            for limit in found:
                limits += 1
                assert limit.weight @ np.array(counts) > limit.most
                assert all(limit.weight @ plan <= limit.most for plan in plans)
    assert limits >= 30


def test_whole_nodes_leave_no_room_for_others():
    """Six replicas of a node each leave two nodes for the singles, of which a node takes two: four, though 16 GPUs are free."""
    question = instance_of(
        [ShapeRow(8), ShapeRow(1, deployment=1)],
        [1, 1],
        [pool_of([ScopeRow(8)] * 8)],
        rules=[DeploymentRules(), DeploymentRules(Spread("node", 2))],
    )
    assert not list(Limits(question).broken([6, 4]))
    (limit,) = Limits(question).broken([6, 5])
    assert limit.weight.tolist() == [2, 1]
    assert limit.most == 16
    assert limit.capped == {1}


def test_places_keep_room_and_distance():
    placed = 0
    for seed in range(80):
        draw = random.Random(seed)
        question = crowd(draw, draw.choice(["node", "leaf"]))
        assert placeable(question)
        wanted = [draw.choice([0, 1, 3, 9]) for _ in range(len(question.shapes))]
        places = places_of(question, wanted, all_free(question))
        used = np.zeros(len(question.pools[0]), dtype=np.int64)
        held: Counter[tuple[int, int]] = Counter()
        for shape, spots in places.spots.items():
            assert len(spots) + places.missing.get(shape, 0) == wanted[shape]
            spread = question.rules_of(int(question.shapes.deployment[shape])).spread
            for spot in spots:
                placed += 1
                assert len(spot) == question.shapes.groups[shape]
                np.add.at(used, list(spot), int(question.shapes.size[shape]))
                if spread is not None:
                    labels = question.pools[0].domains[spread.kind]
                    held.update({(int(question.shapes.deployment[shape]), labels[scope][0]) for scope in spot})
        assert (used <= question.pools[0].free).all()
        for (deployment, _), number in held.items():
            spread = question.rules_of(deployment).spread
            assert spread is not None
            assert number <= spread.most
    assert placed >= 300


@pytest.mark.parametrize(("loads", "found"), [((4, 8), True), ((4, 17), False), ((5, 8), False)])
def test_the_last_resort_chooses_and_places(loads: Sequence[int], found: bool):
    """Four nodes: one single replica each, beside which two whole ones of two GPUs fit, and none of the size of the node."""
    rules = [DeploymentRules(Spread("node")), DeploymentRules()]
    question = instance_of(
        [ShapeRow(1), ShapeRow(4, 4, 4, deployment=1), ShapeRow(2, 2, 3, deployment=1)],
        list(loads),
        [pool_of([ScopeRow(5)] * 4)],
        rules=rules,
    )
    plan = chosen_greedily(question)
    assert (plan is not None) is found
    if plan is not None:
        counts, places = plan
        assert counts[0] == len(places.spots[0]) == 4
        assert counts[1] * 4 + counts[2] * 2 >= 8


def test_the_last_resort_takes_larger_replicas_where_domains_are_few():
    """Two nodes hold one replica each, so that the dearer ones of four are needed."""
    question = instance_of([ShapeRow(1), ShapeRow(4, 4, 5)], [8], [pool_of([ScopeRow(8)] * 2)], rules=[DeploymentRules(Spread("node"))])
    plan = chosen_greedily(question)
    assert plan is not None
    assert plan[0] == [0, 2]


def test_a_plan_without_time_to_choose(monkeypatch: pytest.MonkeyPatch):
    """Ctrl-C before anything is found leaves the greedy plan, which keeps apart."""
    question = apart(1_024, 5, 2, Spread("node", 1))
    monkeypatch.setattr("planner.interrupts.asked", lambda: True)
    found = decide(question, OPTIONS, RULES)
    assert found.status is Status.FEASIBLE
    assert found.stopped_by == "interrupt"
    assert_apart(question, found)

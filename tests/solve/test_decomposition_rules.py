"""Deployments that are no knapsacks taken apart with the others: buckets, spares, load that goes unserved."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.buckets import NOT_SERVED, Slicing
from planner.solve.decomposition.alone import Alone, covering_of_buckets
from planner.solve.decomposition.proof import decompose, take_apart
from planner.solve.decomposition.shortfall import ShortKnapsack
from planner.solve.instance import DeploymentRules
from planner.solve.model import build
from planner.solve.result import Result, better
from planner.solve.rules import RULES
from planner.solve.rules.priority import levels
from planner.solve.spare_shapes import with_spares
from tests.solve.fleets import ShapeRow, free_pool, instance_of


def rows_of(draw, deployments, buckets=0):
    """Shapes of one or two groups on two pools, some of them serving buckets."""
    rows = []
    for deployment in range(deployments):
        for _ in range(draw.randint(2, 4)):
            size = draw.choice([1, 2, 4])
            use = tuple(draw.choice([NOT_SERVED, 1, 2, 3, 5]) for _ in range(buckets))
            price = size * draw.randint(1, 3)
            rows.append(ShapeRow(size, draw.randint(1, 6), price, deployment, draw.randint(0, 1), draw.choice([1, 1, 2]), use=use))
    return rows


def pools_of(draw):
    return [free_pool(*(draw.randint(1, 8) for _ in range(3))), free_pool(*(draw.randint(1, 8) for _ in range(2)))]


def question_of(draw, kind):
    """Two deployments on two small pools; the first one has the rule."""
    loads = [draw.randint(2, 12), draw.randint(2, 12)]
    if kind == "buckets":
        cut = Slicing(draw.choice([1, 2, 4]), 10, (500_000, 500_000), (loads[0] // 2 + 1, loads[0] // 2))
        return instance_of(rows_of(draw, 2, 2), loads, pools_of(draw), slicing=(cut, None))
    if kind == "spares":
        return with_spares(
            instance_of(rows_of(draw, 2), loads, pools_of(draw), rules=[DeploymentRules(spares=draw.randint(1, 2)), DeploymentRules()])
        )
    part = draw.choice([Fraction(1), Fraction(1, 2), Fraction(1, 4)])
    rules = [DeploymentRules(may_go_unserved=part), DeploymentRules(may_go_unserved=draw.choice([part, Fraction(0)]))]
    return instance_of(rows_of(draw, 2), [7 * load for load in loads], pools_of(draw), rules=rules)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["buckets", "spares", "unserved"]))
@settings(max_examples=60, deadline=None)
def test_bound_and_plan_of_the_parts_enclose_the_optimum(seed, kind):
    model = build(question_of(random.Random(seed), kind), RULES)
    objectives = [model.cost, *(levels(model) if kind == "unserved" else [])]
    for objective in objectives:
        direct = cpsat.minimise(model.program, objective, cpsat.Limits(2.0))
        assert direct.closed
        found = decompose(model, objective, cpsat.Limits(2.0))
        if found is None:
            continue
        if direct.objective is None:
            assert found.values is None
            continue
        assert found.status is not Status.INFEASIBLE
        assert found.bound is None or found.bound <= direct.objective
        if found.values is not None:
            assert not model.program.violated(found.values)
            assert found.objective >= direct.objective


def test_counts_that_a_plan_may_have_hold_those_of_the_best():
    taken = 0
    for seed in range(40):
        model = build(question_of(random.Random(seed), ("buckets", "spares", "unserved")[seed % 3]), RULES)
        direct = cpsat.minimise(model.program, model.cost, cpsat.Limits(2.0))
        apart = take_apart(model, model.cost)
        if direct.objective is None or apart is None:
            continue
        found = apart.ranges(direct.objective, minimal=False)
        if found is None:
            continue
        low, high = (bounds[: len(model.count)].tolist() for bounds in found)
        bounded = model.program.within(model.count, low, high)
        assert cpsat.minimise(bounded, model.cost, cpsat.Limits(2.0)).objective == direct.objective
        taken += 1
    assert taken >= 10


def test_the_covering_row_of_buckets_keeps_every_choice():
    kept = 0
    for seed in range(30):
        draw = random.Random(seed)
        model = build(question_of(draw, "buckets"), RULES)
        apart = take_apart(model, model.cost)
        if apart is None or cpsat.minimise(model.program, {}, cpsat.Limits(1.0)).values is None:
            continue
        knapsack = apart.generation.parts.knapsacks[0]
        assert isinstance(knapsack, Alone)
        mine = model.instance.of_deployment(0).tolist()
        assert covering_of_buckets(model.instance, 0, mine, model.cost) == (list(knapsack.capacities), knapsack.load)
        for counts in product(*(range(min(limit, 3) + 1) for limit in knapsack.limits)):
            fixed = knapsack.program.copy()
            fixed.lower[: len(counts)] = fixed.upper[: len(counts)] = list(counts)
            if cpsat.minimise(fixed, {}, cpsat.Limits(0.1)).values is not None:
                assert sum(q * n for q, n in zip(knapsack.capacities, counts, strict=True)) >= knapsack.load
                kept += 1
            if kept > 400:
                return
    assert kept > 50


def brute(knapsack, costs):
    """Least cost over all counts."""
    last = len(costs) - 1
    best = None
    for counts in product(*(range(limit + 1) for limit in knapsack.limits[:last])):
        used = {i for i, count in enumerate(counts) if count}
        if not any(used <= set(family) for family in knapsack.families):
            continue
        short = max(0, knapsack.load - sum(q * n for q, n in zip(knapsack.capacities, counts, strict=False)))
        if short <= knapsack.limits[last]:
            cost = sum(c * n for c, n in zip(costs, counts, strict=False)) + short * costs[last]
            best = cost if best is None else min(best, cost)
    return best


@given(seed=st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_a_knapsack_that_may_fall_short_is_solved_exactly(seed):
    draw = random.Random(seed)
    shapes = draw.randint(1, 4)
    families = (tuple(range(shapes)),) if draw.random() < 0.7 else tuple((i,) for i in range(shapes))
    knapsack = ShortKnapsack(
        (*(draw.randint(0, 9) for _ in range(shapes)), 1),
        (*(draw.randint(0, 3) for _ in range(shapes)), draw.randint(0, 30)),
        draw.randint(1, 40),
        families,
    )
    costs = [draw.randint(0, 20) for _ in range(shapes)] + [draw.randint(0, 4)]
    cover = knapsack.cheapest(costs)
    assert cover.bound == brute(knapsack, costs)
    if cover.counts is not None:
        assert sum(c * n for c, n in zip(costs, cover.counts, strict=True)) == cover.bound
        assert sum(q * n for q, n in zip(knapsack.capacities, cover.counts, strict=True)) >= knapsack.load


def test_a_bound_above_a_plan_is_worth_nothing():
    plan = Result(Status.FEASIBLE, (1,), 10, 7, "effort")
    assert better(plan, Result(Status.UNKNOWN, bound=11)) == plan
    assert better(plan, Result(Status.UNKNOWN, bound=10)).status is Status.OPTIMAL
    assert better(plan, Result(Status.UNKNOWN, bound=9)) == replace(plan, bound=9)


def test_a_plan_that_meets_the_bound_is_proved_without_a_list():
    """The program over lists would ask for less than the bound, which no solver takes for a question."""
    proved = 0
    for seed in range(30):
        model = build(question_of(random.Random(seed), "spares"), RULES)
        direct = cpsat.minimise(model.program, model.cost, cpsat.Limits(2.0))
        apart = take_apart(model, model.cost)
        if direct.objective is None or apart is None or apart.bound is None or apart.bound.value < direct.objective:
            continue
        known = Result(Status.FEASIBLE, direct.values, direct.objective, None, "effort")
        assert apart.prove(cpsat.Limits(1.0), known=known).status is Status.OPTIMAL
        proved += 1
    assert proved >= 3

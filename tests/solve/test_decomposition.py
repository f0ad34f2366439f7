"""Deployments taken apart give the optimum of the whole."""

from __future__ import annotations

import random
from itertools import product

import pytest

from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.decomposition.columns import Pool, generate
from planner.solve.decomposition.knapsack import Knapsack
from planner.solve.decomposition.proof import decompose
from planner.solve.decomposition.split import split
from planner.solve.instance import Instance, ReplicaLimits
from planner.solve.model import build
from planner.solve.rules import RULES
from tests.solve.fleets import ScopeRow, ShapeRow, free_pool, instance_of, pool_of

EFFORT = cpsat.Limits(4.0)


def fleet(seed: int) -> Instance:
    draw = random.Random(seed)
    pools = [free_pool(*(draw.randint(0, 8) for _ in range(draw.randint(2, 6)))) for _ in range(2)]
    deployments = draw.randint(2, 4)
    rows = [
        ShapeRow(size := draw.choice([1, 2, 4, 8]), draw.randint(1, 4) * size, draw.randint(5, 9) * size, deployment, draw.randrange(2))
        for deployment in range(deployments)
        for _ in range(draw.randint(2, 4))
    ]
    return instance_of(rows, [draw.randint(3, 25) for _ in range(deployments)], pools)


def assert_equals_direct(seed: int) -> bool:
    model = build(fleet(seed), RULES)
    direct = cpsat.minimise(model.program, model.cost, EFFORT)
    parts = split(model, model.cost)
    assert parts is not None
    apart = decompose(model, model.cost, parts, EFFORT)
    if direct.objective is None:
        assert direct.status is Status.INFEASIBLE
        assert apart.objective is None
        return False
    assert apart.bound is not None
    assert apart.bound <= direct.objective
    if apart.status is Status.OPTIMAL:
        assert apart.objective == direct.objective
    assert apart.objective is None or apart.objective >= direct.objective
    return apart.status is Status.OPTIMAL


def test_proofs_equal_cp_sat():
    assert sum(assert_equals_direct(seed) for seed in range(40)) >= 15


@pytest.mark.thorough
def test_many_proofs_equal_cp_sat():
    assert sum(assert_equals_direct(seed) for seed in range(40, 340)) >= 100


def brute(knapsack: Knapsack, costs: list[int]) -> dict[tuple[int, ...], int]:
    """Cost of every cover."""
    return {
        counts: sum(c * n for c, n in zip(costs, counts, strict=True))
        for counts in product(*(range(limit + 1) for limit in knapsack.limits))
        if sum(q * n for q, n in zip(knapsack.capacities, counts, strict=True)) >= knapsack.load
    }


@pytest.mark.parametrize("seed", range(40))
def test_knapsack_finds_the_least_cover_and_all_minimal_ones_near_it(seed):
    draw = random.Random(seed)
    size = draw.randint(1, 4)
    knapsack = Knapsack([draw.randint(1, 9) for _ in range(size)], [draw.randint(0, 3) for _ in range(size)], draw.randint(1, 20))
    costs = [draw.randint(1, 9) for _ in range(size)]
    covers = brute(knapsack, costs)
    cover = knapsack.cheapest(costs)
    if not covers:
        assert cover.counts is None
        assert cover.bound is None
        return
    least = min(covers.values())
    assert (cover.cost, cover.bound) == (least, least)
    assert cover.counts is not None
    assert covers[cover.counts] == least
    minimal = {
        counts
        for counts, cost in covers.items()
        if cost <= least + 5 and not any(n and (*counts[:i], n - 1, *counts[i + 1 :]) in covers for i, n in enumerate(counts))
    }
    listed, complete = knapsack.near(costs, least + 5, 10_000)
    assert complete
    assert set(listed) == minimal


def test_the_bound_never_exceeds_the_optimum():
    for seed in range(30):
        model = build(fleet(seed), RULES)
        parts = split(model, model.cost)
        assert parts is not None
        bound = generate(Pool(parts), 1)
        direct = cpsat.minimise(model.program, model.cost, EFFORT)
        if direct.objective is not None:
            assert bound is not None
            assert bound.value <= direct.objective


def test_programs_with_other_variables_are_not_taken_apart():
    rows = [ShapeRow(4, deployment=0), ShapeRow(4, deployment=1)]
    by_node = instance_of(rows, [1, 1], [pool_of([ScopeRow(8)], node_price=5)])
    model = build(by_node, RULES)
    assert split(model, model.cost) is None


def test_limits_on_replicas_are_not_taken_apart():
    rows = [ShapeRow(4, deployment=0), ShapeRow(4, deployment=1)]
    model = build(instance_of(rows, [1, 1], [free_pool(8, 8)], [ReplicaLimits(2), ReplicaLimits()]), RULES)
    assert split(model, model.cost) is None

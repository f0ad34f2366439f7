"""Deployments taken apart give the optimum of the whole, and never a bound above it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.decomposition.columns import Generation
from planner.solve.decomposition.prices import Master
from planner.solve.decomposition.proof import decompose
from planner.solve.decomposition.split import objective_unit, split
from planner.solve.instance import Budget, Container, GpuBudget, Instance, ReplicaLimits
from planner.solve.model import Model, build
from planner.solve.rules import RULES
from planner.solve.search import expression
from tests.solve.exhaustive import best
from tests.solve.fleets import ScopeRow, ShapeRow, free_pool, instance_of, pool_of

EFFORT = cpsat.Limits(4.0)


def fleet(seed: int) -> Instance:
    """Two pools, two to four deployments, every per-deployment and joining rule now and then."""
    draw = random.Random(seed)
    priced = [draw.choice([None, None, None, 20]) for _ in range(2)]
    pools = [
        pool_of([ScopeRow(draw.randint(0, 8), leaf=scope // 2) for scope in range(draw.randint(2, 6))], node_price=price)
        for price in priced
    ]
    deployments = draw.randint(2, 4)
    rows = [
        ShapeRow(
            size := draw.choice([1, 2, 4, 8]),
            draw.randint(1, 4) * size,
            draw.randint(5, 9) * size,
            deployment,
            draw.randrange(2),
            groups=(groups := draw.choice([1, 1, 1, 2])),
            container=draw.choice([Container.ANYWHERE, Container.LEAF]) if groups > 1 else Container.ANYWHERE,
        )
        for deployment in range(deployments)
        for _ in range(draw.randint(2, 4))
    ]
    limits = [
        draw.choice(
            [
                ReplicaLimits(),
                ReplicaLimits(),
                ReplicaLimits(draw.randint(1, 3)),
                ReplicaLimits(0, draw.randint(1, 5)),
                ReplicaLimits(one_shape=True),
            ]
        )
        for _ in range(deployments)
    ]
    budget = Budget(draw.choice([None, None, draw.randint(60, 300)]), draw.choice([(), (GpuBudget("first", (0,), draw.randint(4, 20)),)]))
    return instance_of(
        rows, [draw.randint(3, 25) for _ in range(deployments)], pools, limits, budget, draw.choice(["cost", "cost", "gpus"])
    )


def plain(seed: int) -> Instance:
    """Loads and nested rows alone, so small that brute force ends."""
    draw = random.Random(seed)
    pools = [free_pool(*(draw.randint(0, 8) for _ in range(draw.randint(1, 3)))) for _ in range(2)]
    rows = [
        ShapeRow(size := draw.choice([1, 2, 4, 8]), draw.randint(1, 4) * size, draw.randint(5, 9) * size, deployment, draw.randrange(2))
        for deployment in range(2)
        for _ in range(draw.randint(1, 3))
    ]
    return instance_of(rows, [draw.randint(3, 15) for _ in range(2)], pools)


def both(instance: Instance) -> tuple[Model, cpsat.Result, cpsat.Result | None]:
    model = build(instance, RULES)
    objective = expression(model, instance.objective)
    return model, cpsat.minimise(model.program, objective, EFFORT), decompose(model, objective, EFFORT)


def assert_agrees_with_cp_sat(seed: int) -> Status:
    """The decomposition proves the direct optimum, or leaves it between its bound and its plan; "impossible" only where it is."""
    model, direct, apart = both(fleet(seed))
    assert apart is not None
    assert direct.status in {Status.OPTIMAL, Status.INFEASIBLE}
    if direct.objective is None:
        assert apart.objective is None
        return apart.status
    assert apart.status is not Status.INFEASIBLE
    assert apart.bound is not None
    assert apart.bound <= direct.objective
    if apart.objective is not None:
        assert apart.objective >= direct.objective
        assert apart.values is not None
        assert not model.program.violated(apart.values)
    if apart.status is Status.OPTIMAL:
        assert apart.objective == direct.objective
    return apart.status


def test_proofs_equal_cp_sat():
    found = [assert_agrees_with_cp_sat(seed) for seed in range(60)]
    assert found.count(Status.OPTIMAL) >= 20
    assert found.count(Status.INFEASIBLE) >= 3


@pytest.mark.thorough
def test_many_proofs_equal_cp_sat():
    found = [assert_agrees_with_cp_sat(seed) for seed in range(1000, 1600)]
    assert found.count(Status.OPTIMAL) >= 200


def assert_equals_brute_force(seed: int) -> bool:
    """Small fleets under the plain rules are decided, and rightly; whether there is a plan."""
    instance = plain(seed)
    _, _, apart = both(instance)
    truth = best(instance)
    assert apart is not None
    if truth is None:
        assert apart.status is Status.INFEASIBLE
        return False
    assert apart.status is Status.OPTIMAL
    assert apart.objective == truth[0]
    return True


def test_proofs_equal_brute_force():
    assert sum(assert_equals_brute_force(seed) for seed in range(30)) >= 10


@pytest.mark.thorough
def test_many_proofs_equal_brute_force():
    assert sum(assert_equals_brute_force(seed) for seed in range(5000, 5300)) >= 100


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9), prices=st.lists(st.integers(0, 10**6), min_size=40, max_size=40))
def test_any_prices_give_a_lower_bound(seed, prices):
    instance = fleet(seed)
    model = build(instance, RULES)
    objective = expression(model, instance.objective)
    parts = split(model, objective)
    direct = cpsat.minimise(model.program, objective, EFFORT)
    if parts is None or direct.objective is None:
        return
    generation = Generation(parts, objective_unit(parts))
    generation.price(np.resize(np.array(prices), len(parts.room)) / 1e5, Master(parts))
    assert generation.best is not None
    assert generation.best.value <= direct.objective
    bound = Generation(parts, objective_unit(parts)).run()
    assert bound is not None
    assert bound.value <= direct.objective


def test_the_same_question_gives_the_same_answer():
    answers = {repr(both(fleet(seed))[2]) for seed in (7,) for _ in range(3)}
    assert len(answers) == 1


def test_a_gap_ends_the_search():
    for seed in range(100):
        model = build(plain(seed), RULES)
        exact = decompose(model, model.cost, EFFORT)
        rough = decompose(model, model.cost, replace(EFFORT, gap=0.5))
        if exact is not None and rough is not None and rough.stopped_by == "gap":
            assert rough.objective is not None
            assert rough.bound is not None
            assert rough.objective - rough.bound <= 0.5 * rough.objective
            assert exact.status is Status.OPTIMAL or exact.bound >= rough.bound
            return
    pytest.fail("no search ended at its gap")


def test_one_deployment_is_left_to_the_whole_program():
    model = build(instance_of([ShapeRow(4)], [1], [free_pool(8)]), RULES)
    assert decompose(model, model.cost, EFFORT) is None


def test_throughput_is_left_to_the_whole_program():
    rows = [ShapeRow(4, deployment=0), ShapeRow(4, deployment=1)]
    model = build(instance_of(rows, [1, 1], [free_pool(8, 8)], objective="throughput"), RULES)
    assert decompose(model, expression(model, "throughput"), EFFORT) is None


def test_nodes_billed_whole_are_variables_of_the_master():
    """Two deployments share one node of 20 instead of opening two."""
    rows = [ShapeRow(4, 1, 7, deployment=0), ShapeRow(4, 1, 7, deployment=1)]
    _, direct, apart = both(instance_of(rows, [1, 1], [pool_of([ScopeRow(8), ScopeRow(8)], node_price=20)]))
    assert apart is not None
    assert direct.objective == 20
    assert apart.bound is not None
    assert apart.bound <= 20
    assert apart.objective in {None, 20}


def test_loads_that_no_fleet_holds_are_impossible():
    """Each deployment fits alone, both do not: the bound passes what any plan could cost."""
    rows = [ShapeRow(8, 1, 5, deployment=0), ShapeRow(8, 1, 5, deployment=1)]
    _, direct, apart = both(instance_of(rows, [2, 2], [free_pool(8, 8, 8)]))
    assert direct.status is Status.INFEASIBLE
    assert apart is not None
    assert apart.status is Status.INFEASIBLE

"""What the bound leaves of every count, and the ties that are broken within it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.fleets import instance as large_fleet
from planner.plan.outcome import Status
from planner.solve import cpsat, search
from planner.solve.decomposition.knapsack import Knapsack
from planner.solve.decomposition.proof import CLOSE, FAR, take_apart
from planner.solve.decomposition.tightening import interval
from planner.solve.dominance import worth_keeping
from planner.solve.instance import Instance
from planner.solve.model import build
from planner.solve.narrowing import narrowed
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.result import NOTHING, Result
from planner.solve.rules import RULES
from planner.solve.stages import expression, stages_after
from tests.solve.fleets import ShapeRow, free_pool, instance_of
from tests.solve.test_decomposition_lists import cost_of, feasible

EFFORT = cpsat.Limits(8.0)


def fleet(seed: int, deployments: int = 3) -> Instance:
    """A fleet whose prices tie often: money by GPU, times at random."""
    draw = random.Random(seed)
    pools = [free_pool(*(draw.randint(0, 8) for _ in range(draw.randint(3, 7)))) for _ in range(2)]
    rows = [
        ShapeRow(
            size := draw.choice([1, 2, 4, 8]),
            draw.randint(1, 3) * size,
            draw.choice([2, 3]) * size,
            deployment,
            draw.randrange(2),
            comm=draw.randint(0, 9),
            tpot=draw.randint(1, 9) * 10**4,
        )
        for deployment in range(deployments)
        for _ in range(draw.randint(2, 5))
    ]
    return instance_of(rows, [draw.randint(3, 20) for _ in range(deployments)], pools)


def stage_by_stage(instance: Instance) -> list[int] | None:
    """Least values of the objective and the stages after it over all shapes, each proved by the program as a whole."""
    model = build(instance, RULES)
    found = []
    for name in (instance.objective, *stages_after(instance)):
        objective = expression(model, name)
        result = cpsat.minimise(model.program, objective, EFFORT)
        if result.objective is None:
            return None
        assert result.status is Status.OPTIMAL
        found.append(result.objective)
        model.program.add_row("fixed", objective, upper=result.objective)
    return found


def assert_ties_are_exact(seed: int) -> bool:
    instance = fleet(seed)
    instance = replace(instance, objective="cost" if seed % 3 else "gpus")
    expected = stage_by_stage(instance)
    decision = decide(instance, SolveOptions(), RULES)
    if expected is None:
        assert decision.status is Status.INFEASIBLE
        return False
    told = [stage.value for stage in decision.stages if stage.name in {instance.objective, *stages_after(instance)}]
    assert told == expected
    assert all(stage.bound is not None and stage.bound <= stage.value for stage in decision.stages)
    return True


def test_ties_within_the_bound_are_those_of_all_plans():
    assert sum(assert_ties_are_exact(seed) for seed in range(40)) >= 20


@pytest.mark.thorough
def test_ties_within_the_bound_are_those_of_all_plans_many_times():
    assert sum(assert_ties_are_exact(seed) for seed in range(1_000, 1_400)) >= 200


def test_intervals_hold_every_choice_up_to_the_threshold():
    """And they are tight enough to leave shapes out."""
    left_out = 0
    for seed in range(300):
        draw = random.Random(seed)
        size = draw.randint(1, 4)
        question = Knapsack(
            tuple(draw.randint(0, 9) for _ in range(size)),
            tuple(draw.randint(0, 4) for _ in range(size)),
            draw.randint(1, 20),
            families=(tuple(range(size)),),
        )
        costs = [draw.randint(0, 9) for _ in range(size)]
        choices = {counts: cost_of(costs, counts) for counts in feasible(question)}
        if not choices:
            continue
        cheapest = min(choices, key=lambda counts: (choices[counts], counts))
        threshold = choices[cheapest] + draw.choice([0, 0, 1, 5])
        low, high = interval(question.capacities, costs, np.array(question.limits), question.load, threshold, cheapest)
        for counts, cost in choices.items():
            if cost <= threshold:
                assert (low <= counts).all(), (seed, counts)
                assert (counts <= high).all(), (seed, counts)
        left_out += int((high < question.limits).sum())
    assert left_out > 200


def test_a_shape_in_no_plan_of_the_value_is_left_out():
    """Two deployments of one cheap and one dear shape each: at the optimum the dear ones are in no plan, at a greater value they are."""
    rows = [ShapeRow(1, 1, price, deployment) for deployment in range(2) for price in (1, 3)]
    instance = instance_of(rows, [2, 2], [free_pool(8)])
    model = build(instance, RULES)
    apart = take_apart(model, model.cost)
    assert apart is not None
    at_optimum = narrowed(apart, model, model.cost, 4, [model.token_time()], proved=True)
    above = narrowed(apart, model, model.cost, 6, [model.token_time()], proved=False)
    assert at_optimum is not None
    assert above is not None
    assert at_optimum.high.tolist() == [2, 0, 2, 0]
    assert at_optimum.counts == (2, 0, 2, 0)
    assert above.high[1] > 0
    assert not above.counts


def test_prices_carried_to_more_shapes_keep_their_bound():
    """At the prices of the program without the shapes that the objective leaves out, most shapes are in no plan of the optimum's cost, and the optimum is."""
    question = large_fleet(1_024, 20, 1)
    model, wide = build(question.keep(worth_keeping(question, ties=False)), RULES), build(question, RULES)
    apart = take_apart(model, model.cost)
    assert apart is not None
    optimum = apart.prove(EFFORT)
    assert optimum.objective is not None
    assert optimum.values is not None
    found = narrowed(apart, wide, wide.cost, optimum.objective, [], proved=False)
    assert found is not None
    assert int((found.high == 0).sum()) > len(question.shapes) // 2
    counts = np.zeros(len(question.shapes), dtype=np.int64)
    counts[model.instance.source] = optimum.values
    assert (found.low <= counts).all()
    assert (counts <= found.high).all()


def test_a_large_fleet_has_all_its_ties_proved():
    decision = decide(large_fleet(1_024, 20, 3), SolveOptions(), RULES)
    assert decision.status is Status.OPTIMAL
    assert [(stage.name, stage.value == stage.bound) for stage in decision.stages] == [
        (name, True) for name in ("cost", "token_time", "communication", "whole_scopes", "order")
    ]


def test_without_a_bound_the_ties_are_broken_over_all_shapes(monkeypatch):
    """The bound only saves work: what it leaves out is in no plan of the value."""
    instance = fleet(5)
    told = decide(instance, SolveOptions(), RULES)
    monkeypatch.setattr(search, "take_apart", lambda *_: None)
    monkeypatch.setattr(search, "taken_apart", lambda *_: None)
    alone = decide(instance, SolveOptions(), RULES)
    assert [(stage.name, stage.value) for stage in told.stages[:4]] == [(stage.name, stage.value) for stage in alone.stages[:4]]


@pytest.mark.parametrize("reach", [CLOSE, FAR])
def test_a_search_starts_from_the_plan_that_is_known(reach):
    model = build(fleet(5), RULES)
    apart = take_apart(model, model.cost)
    assert apart is not None
    fresh = apart.prove(EFFORT, reach=reach)
    assert fresh.status is Status.OPTIMAL
    assert fresh.objective is not None
    known = Result(Status.FEASIBLE, fresh.values, fresh.objective, None, "effort")
    assert apart.prove(EFFORT, known=known, reach=reach) == replace(fresh, bound=fresh.objective)
    assert apart.prove(EFFORT, known=NOTHING, reach=reach).objective == fresh.objective
    # A plan at its bound leaves nothing to combine.
    closed = apart.prove(EFFORT, known=replace(known, bound=fresh.objective), reach=FAR)
    assert closed.status is Status.OPTIMAL
    assert closed.objective == fresh.objective

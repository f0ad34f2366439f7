"""Joining lists without a solver finds what CP-SAT finds over the same lists."""

from __future__ import annotations

import random

import numpy as np
import pytest

from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.decomposition import joining
from planner.solve.decomposition.columns import Generation
from planner.solve.decomposition.combining import choices, combine, live_rows
from planner.solve.decomposition.listing import near
from planner.solve.decomposition.split import objective_unit, split
from planner.solve.instance import Instance
from planner.solve.model import build
from planner.solve.rules import RULES
from tests.solve.fleets import ShapeRow, free_pool, instance_of


def fleet(seed: int) -> Instance:
    draw = random.Random(seed)
    pools = [free_pool(*(draw.randint(0, 8) for _ in range(draw.randint(3, 8)))) for _ in range(2)]
    rows = [
        ShapeRow(size := draw.choice([1, 2, 4, 8]), draw.randint(1, 4) * size, draw.randint(5, 9) * size, deployment, draw.randrange(2))
        for deployment in range(3)
        for _ in range(draw.randint(2, 4))
    ]
    return instance_of(rows, [draw.randint(3, 25) for _ in range(3)], pools)


def assert_joined_equals_combined(seed: int, distance: int) -> Status | None:
    model = build(fleet(seed), RULES)
    parts = split(model, model.cost)
    assert parts is not None
    generation = Generation(parts, objective_unit(parts))
    bound = generation.run()
    if bound is None or generation.impossible:
        return None
    upper = bound.value + distance
    slack = (upper - 1) * bound.scale - bound.exact
    listed = []
    for deployment, costs in enumerate(bound.costs(parts)):
        counts = near(parts.knapsacks[deployment], costs, bound.least[deployment] + slack, 10_000)
        assert counts is not None
        listed.append(choices(parts, deployment, counts))
    live = live_rows(parts, listed)
    joined = joining.join(parts, listed, live, bound, upper)
    combined = combine(parts, listed, live, bound.value, upper - 1, cpsat.Limits(4.0))
    assert joined is not None
    assert joined.status is combined.status
    assert joined.objective == combined.objective
    if joined.values is not None:
        assert not model.program.violated(joined.values)
        assert joined.objective is not None
        better = joining.join(parts, listed, live, bound, joined.objective)
        assert better is not None
        assert better.status is Status.INFEASIBLE
    return joined.status


def test_joined_lists_equal_cp_sat():
    found = [assert_joined_equals_combined(seed, distance) for seed in range(60) for distance in (1, 3, 9)]
    assert found.count(Status.OPTIMAL) >= 50


@pytest.mark.thorough
def test_many_joined_lists_equal_cp_sat():
    found = [assert_joined_equals_combined(seed, distance) for seed in range(1000, 1500) for distance in (1, 2, 5, 12)]
    assert found.count(Status.OPTIMAL) >= 500


def test_too_many_pairs_are_left_to_the_solver(monkeypatch):
    monkeypatch.setattr(joining, "PAIRS", 1)
    rows = [
        ShapeRow(4, 1, 5, deployment=0),
        ShapeRow(2, 1, 5, deployment=0),
        ShapeRow(4, 1, 5, deployment=1),
        ShapeRow(2, 1, 5, deployment=1),
    ]
    model = build(instance_of(rows, [1, 1], [free_pool(8)]), RULES)
    parts = split(model, model.cost)
    assert parts is not None
    generation = Generation(parts, 5)
    bound = generation.run()
    assert bound is not None
    listed = [choices(parts, deployment, np.array([[1, 0], [0, 1]])) for deployment in range(2)]
    assert joining.join(parts, listed, live_rows(parts, listed), bound, bound.value + 5) is None

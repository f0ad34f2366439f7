"""The covering knapsack of one deployment: its least cost, the list of all minimal choices near it, and what thinning may leave out."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.solve.decomposition.combining import choices, live_rows, undominated
from planner.solve.decomposition.knapsack import Knapsack
from planner.solve.decomposition.listing import near
from planner.solve.decomposition.split import split
from planner.solve.model import build
from planner.solve.rules import RULES
from tests.solve.fleets import ShapeRow, free_pool, instance_of


def knapsack(draw: random.Random) -> tuple[Knapsack, list[int]]:
    size = draw.randint(1, 4)
    families = draw.choice([(tuple(range(size)),), (tuple(range(size)),), tuple((shape,) for shape in range(size))])
    minimum = draw.choice([0, 0, 1, 3])
    return (
        Knapsack(
            tuple(draw.randint(0 if minimum else 1, 9) for _ in range(size)),
            tuple(draw.randint(0, 4) for _ in range(size)),
            draw.randint(1, 20),
            minimum,
            draw.choice([None, None, draw.randint(1, 6)]),
            families,
        ),
        [draw.randint(0, 9) for _ in range(size)],
    )


def feasible(question: Knapsack) -> set[tuple[int, ...]]:
    """Every choice that keeps load, limits and families, by trying all."""
    return {
        counts
        for counts in product(*(range(limit + 1) for limit in question.limits))
        if sum(q * n for q, n in zip(question.capacities, counts, strict=True)) >= question.load
        and question.minimum <= sum(counts) <= (question.maximum if question.maximum is not None else 10**9)
        and any(all(shape in family for shape, n in enumerate(counts) if n) for family in question.families)
    }


def cost_of(costs: list[int], counts: tuple[int, ...]) -> int:
    return sum(c * n for c, n in zip(costs, counts, strict=True))


def assert_least_and_list(seed: int) -> None:
    question, costs = knapsack(random.Random(seed))
    every = feasible(question)
    cover = question.cheapest(costs)
    if not every:
        assert cover.counts is None
        assert cover.bound is None
        return
    least = min(cost_of(costs, counts) for counts in every)
    assert cover.bound == least
    assert cover.counts in every
    assert cost_of(costs, cover.counts) == least
    minimal = {
        counts
        for counts in every
        if cost_of(costs, counts) <= least + 5
        and not any(n and (*counts[:i], n - 1, *counts[i + 1 :]) in every for i, n in enumerate(counts))
    }
    listed = near(question, costs, least + 5, 10_000)
    assert listed is not None
    assert {tuple(row) for row in listed.tolist()} == minimal


@pytest.mark.parametrize("seed", range(60))
def test_the_least_choice_and_all_minimal_ones_near_it(seed):
    assert_least_and_list(seed)


@pytest.mark.thorough
def test_many_lists_are_complete():
    for seed in range(1000, 4000):
        assert_least_and_list(seed)


def test_a_list_that_grows_too_long_is_given_up():
    question = Knapsack((1, 1, 1), (50, 50, 50), 50, families=((0, 1, 2),))
    assert near(question, [1, 1, 1], 50, 100) is None
    whole = near(question, [1, 1, 1], 50, 10_000)
    assert whole is not None
    assert len(whole) == 51 * 52 // 2


def test_figures_beyond_doubles_are_told_apart():
    """Two covers whose costs differ by one part in 1e15: the exact threshold keeps the one and not the other."""
    question = Knapsack((1, 1), (1, 1), 1, families=((0, 1),))
    listed = near(question, [10**15, 10**15 + 1], 10**15, 10)
    assert listed is not None
    assert listed.tolist() == [[1, 0]]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_thinning_leaves_out_exactly_what_another_choice_replaces(figures):
    from planner.solve.decomposition.combining import Choices

    rows = np.array(figures, dtype=np.int64)
    listed = Choices(np.arange(len(rows))[:, None], rows[:, 0], rows[:, 1:])
    thin = undominated(listed, np.array([True, False]), 100)
    assert thin is not None
    kept = {tuple(row) for row in np.column_stack((thin.cost, thin.use[:, 0])).tolist()}
    every = {(cost, use) for cost, use, _ in figures}
    front = {a for a in every if not any(b != a and b[0] <= a[0] and b[1] <= a[1] for b in every)}
    assert kept == front
    assert len(thin) == len(front)
    assert undominated(listed, np.array([True, False]), len(front) - 1) is None


def test_only_rows_that_lists_could_break_are_looked_at():
    rows = [ShapeRow(4, 1, 5, deployment=0), ShapeRow(4, 1, 5, deployment=1), ShapeRow(8, 1, 9, deployment=1)]
    model = build(instance_of(rows, [1, 1], [free_pool(8, 4)]), RULES)
    parts = split(model, model.cost)
    assert parts is not None
    four = [choices(parts, 0, np.array([[1]])), choices(parts, 1, np.array([[1, 0]]))]
    assert not live_rows(parts, four).any()
    many = [choices(parts, 0, np.array([[3]])), choices(parts, 1, np.array([[1, 0], [0, 1]]))]
    assert live_rows(parts, many).any()

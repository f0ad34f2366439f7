"""Nested rows, fill patterns and counts by scope against exhaustive packing."""

from __future__ import annotations

import random

import pytest

from planner.plan.outcome import Status
from planner.solve import patterns
from planner.solve.instance import Container
from planner.solve.layout import Item, lay_out
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES
from tests.solve.exhaustive import packs
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of
from tests.solve.placed import assert_placed


def case(seed: int, sizes: tuple[int, ...], pins: bool = False):
    """Groups that must all be placed: one deployment a group kind, its load the number of replicas."""
    draw = random.Random(seed)
    scopes = [ScopeRow(draw.randint(0, 8), 8, leaf := draw.randint(0, 2), leaf // 2) for _ in range(draw.randint(1, 4))]
    rows, loads = [], []
    for _ in range(draw.randint(1, 3)):
        groups = draw.choice([1, 2, 3]) if pins else 1
        container = draw.choice(list(Container)) if groups > 1 else Container.ANYWHERE
        rows.append(ShapeRow(draw.choice(sizes), groups=groups, container=container, deployment=len(rows)))
        loads.append(draw.randint(1, 2 if pins else 3))
    replicas = tuple((row.size, row.groups, int(row.container), False) for row, load in zip(rows, loads, strict=True) for _ in range(load))
    fits = packs(tuple((s.leaf, s.spine, s.fabric, (s.free,)) for s in scopes), tuple(sorted(replicas, key=lambda r: (-r[1], -r[0]))))
    return instance_of(rows, loads, [pool_of(scopes)]), fits


def assert_packs_exactly(seed: int, sizes: tuple[int, ...], pins: bool = False) -> bool:
    instance, fits = case(seed, sizes, pins)
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.status is (Status.OPTIMAL if fits else Status.INFEASIBLE)
    if decision.model is not None:
        assert_placed(decision.model.instance, place(decision.model, decision.values), decision.counts)
    return fits


def test_nested_rows_pack_exactly():
    outcomes = [assert_packs_exactly(seed, (1, 2, 4, 8)) for seed in range(60)]
    assert 10 < sum(outcomes) < 50


def test_pinned_replicas_pack_exactly():
    outcomes = [assert_packs_exactly(seed, (1, 2, 4, 8), pins=True) for seed in range(60)]
    assert 10 < sum(outcomes) < 50


def test_patterns_pack_exactly():
    outcomes = [assert_packs_exactly(seed, (2, 3, 5), pins=True) for seed in range(60)]
    assert 10 < sum(outcomes) < 50


def test_counts_by_scope_pack_exactly(monkeypatch):
    """With no pattern allowed, every scope gets counts of its own."""
    patterns.maximal_patterns.cache_clear()
    monkeypatch.setattr(patterns, "PATTERN_LIMIT", 0)
    outcomes = [assert_packs_exactly(seed, (2, 3, 5)) for seed in range(60)]
    patterns.maximal_patterns.cache_clear()
    assert 10 < sum(outcomes) < 50


@pytest.mark.thorough
@pytest.mark.parametrize(("sizes", "pins"), [((1, 2, 4, 8), False), ((1, 2, 4, 8), True), ((1, 2, 3, 4, 6), False), ((2, 3, 5), True)])
def test_three_hundred_packings(sizes, pins):
    outcomes = [assert_packs_exactly(seed, sizes, pins) for seed in range(100, 400)]
    assert 30 < sum(outcomes) < 290


def test_maximal_patterns_of_an_empty_node():
    """Counts known from enumeration by hand and in the literature on 8-GPU nodes: 10 for powers of two, 21 with 3, 5 and 6."""
    powers = tuple(Item(size, False) for size in (8, 4, 2, 1))
    mixed = tuple(Item(size, False) for size in (8, 6, 5, 4, 3, 2, 1))
    assert len(patterns.maximal_patterns(8, (), powers)) == 10
    assert len(patterns.maximal_patterns(8, (), mixed)) == 21


def test_patterns_respect_parts():
    """Pairs free (2, 1, 1): a pair and two single GPUs, or four GPUs of any kind."""
    items = (Item(4, False), Item(2, True), Item(1, False))
    assert set(patterns.maximal_patterns(4, (2, 1, 1), items)) == {(1, 0, 0), (0, 1, 2), (0, 0, 4)}


def test_the_plain_model_does_not_grow_with_the_fleet():
    rows = [ShapeRow(size, deployment=0) for size in (1, 2, 4, 8)]
    sizes = set()
    for scopes in (10, 10_000):
        instance = instance_of(rows, [5], [pool_of([ScopeRow(8)] * scopes)])
        decision = decide(instance, SolveOptions(), RULES)
        model = decision.model
        sizes.add((len(model.program.lower), len(lay_out(model.instance, 0).cells)))
    assert len(sizes) == 1


def test_pins_that_nest_need_no_leaf_variables():
    """TP8 pipelines inside a leaf beside smaller plain groups: rows over the pool are exact."""
    rows = [ShapeRow(8, groups=2, container=Container.LEAF), ShapeRow(4, deployment=1)]
    instance = instance_of(rows, [1, 1], [pool_of([ScopeRow(8, 8, leaf) for leaf in range(50) for _ in range(2)])])
    layout = lay_out(instance, 0)
    assert layout.pinned_by_rows
    assert len(layout.cells) == 1


def test_pins_that_do_not_nest_get_cells():
    rows = [ShapeRow(4, groups=3, container=Container.LEAF), ShapeRow(8, deployment=1)]
    layout = lay_out(instance_of(rows, [1, 1], [pool_of([ScopeRow(8, 8, leaf) for leaf in range(3) for _ in range(2)])]), 0)
    assert not layout.pinned_by_rows
    assert len(layout.cells) == 3

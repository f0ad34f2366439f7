"""Loads in buckets of lengths."""

from __future__ import annotations

from fractions import Fraction

import pytest

from planner.plan.outcome import Status
from planner.solve import cpsat, highs
from planner.solve.buckets import NOT_SERVED, Slicing
from planner.solve.decomposition.proof import decompose
from planner.solve.instance import DeploymentRules
from planner.solve.model import build
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.rules import RULES
from planner.solve.search import expression
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.exhaustive import best
from tests.solve.fleets import ShapeRow, free_pool, instance_of, random_bucket_instance

HALVES = (500_000, 500_000)


def two(slices: int, unit: int = 10) -> list[Slicing]:
    return [Slicing(slices, unit, HALVES, (5, 5))]


def test_every_bucket_takes_its_part_of_a_replica():
    """Buckets that take 6 and 5 of ten parts do not share one replica, and 6 and 4 do."""
    assert status(instance_of([ShapeRow(4, use=(6, 4))], [10], [free_pool(4)], slicing=two(1))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of([ShapeRow(4, use=(6, 5))], [10], [free_pool(4)], slicing=two(1)), "buckets")


def test_a_bucket_goes_only_where_it_may_be_served():
    rows = [ShapeRow(2, use=(1, NOT_SERVED)), ShapeRow(4, use=(NOT_SERVED, 1))]
    assert status(instance_of(rows, [10], [free_pool(6)], slicing=two(1))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [10], [free_pool(4)], slicing=two(1)), "buckets")


def test_whole_buckets_need_more_than_sliced_ones():
    """Two replicas of unlike shapes, each with room for three quarters: a bucket in two slices fits both, a whole one neither."""
    rows = [ShapeRow(2, use=(13,)), ShapeRow(1, use=(13,), pool=1)]
    one = [Slicing(1, 10, (10**6,), (10,))]
    cut = [ShapeRow(2, use=(7,)), ShapeRow(1, use=(7,), pool=1)]
    half = [Slicing(2, 10, (10**6,), (10,))]
    assert status(instance_of(cut, [10], [free_pool(2), free_pool(1)], slicing=half)) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [10], [free_pool(2), free_pool(1)], slicing=one), "buckets")


def test_what_may_go_unserved_is_counted_in_the_load():
    """Room for one bucket of two: half the load goes unserved, which must be allowed."""
    rows = [ShapeRow(4, capacity=5, use=(10, 10))]
    half = DeploymentRules(may_go_unserved=Fraction(1, 2))
    less = DeploymentRules(may_go_unserved=Fraction(2, 5))
    assert status(instance_of(rows, [10], [free_pool(4)], slicing=two(1), rules=[half])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [10], [free_pool(4)], slicing=two(1), rules=[less]), "buckets")


def test_the_load_served_is_as_great_as_the_least_bucket():
    """Three replicas: two serve the heavy bucket three times over, one the light one; more of the light one helps nobody."""
    rows = [ShapeRow(4, use=(NOT_SERVED, 2)), ShapeRow(2, use=(10, NOT_SERVED))]
    found = decide(instance_of(rows, [10], [free_pool(4, 4)], objective="throughput", slicing=two(1)), SolveOptions(), RULES)
    assert found.stages[0].value == -2_000_000


def assert_equals_brute_force(seed: int) -> bool:
    instance = random_bucket_instance(seed)
    expected = best(instance)
    decision = decide(instance, SolveOptions(), RULES)
    model = build(instance, RULES)
    terms = expression(model, instance.objective)
    direct = cpsat.minimise(model.program, terms, cpsat.Limits(4.0))
    if expected is None:
        assert decision.status is Status.INFEASIBLE
        assert direct.status is Status.INFEASIBLE
        return False
    assert decision.status is Status.OPTIMAL
    assert (decision.stages[0].value,) == expected
    assert direct.objective == expected[0]
    apart = decompose(model, terms, cpsat.Limits(4.0))
    if apart is not None:
        assert apart.bound is None or apart.bound <= expected[0]
        assert apart.objective is None or apart.objective >= expected[0]
    if highs.available():
        assert highs.minimise(model.program, terms).objective == expected[0]
    return True


def test_a_sample_of_tiny_fleets():
    assert sum(assert_equals_brute_force(seed) for seed in range(30)) >= 10


def test_a_replica_that_serves_nothing_still_counts_as_one():
    assert assert_equals_brute_force(186)


@pytest.mark.thorough
def test_many_tiny_fleets():
    assert sum(assert_equals_brute_force(seed) for seed in range(250)) >= 100

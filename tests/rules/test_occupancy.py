"""Groups need room inside one scope each."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.solve.instance import Container
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.fleets import ScopeRow, ShapeRow, free_pool, instance_of, pool_of


def test_two_models_share_the_free_gpus():
    rows = [ShapeRow(8, deployment=0), ShapeRow(4, deployment=1)]
    assert status(instance_of(rows, [1, 1], [free_pool(8, 4)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1, 1], [free_pool(8, 3)]), "occupancy")


def test_free_gpus_of_two_scopes_do_not_make_one_group():
    rows = [ShapeRow(8, deployment=0), ShapeRow(8, deployment=1)]
    assert status(instance_of(rows, [1, 1], [free_pool(8, 8)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1, 1], [free_pool(8, 7, 7)]), "occupancy")


def test_sizes_that_do_not_divide_one_another_are_packed_exactly():
    """Two scopes of 4 hold 8 GPUs and two groups of 3, but not groups of 3, 3 and 2."""
    rows = [ShapeRow(3, deployment=0), ShapeRow(2, deployment=1)]
    assert status(instance_of(rows, [1, 2], [free_pool(4, 4)])) is Status.OPTIMAL
    assert status(instance_of(rows, [2, 1], [free_pool(4, 5)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [2, 1], [free_pool(4, 4)]), "occupancy")


def test_a_pair_is_whole_or_no_pair():
    """A host with pairs free (2, 1, 1) holds four GPUs of any kind, but only one pair."""
    broken = pool_of([ScopeRow(4, parts=(2, 1, 1))])
    paired = pool_of([ScopeRow(4, parts=(2, 2))])
    anywhere, pair = ShapeRow(4), ShapeRow(2, within_part=True)
    assert status(instance_of([anywhere], [1], [broken])) is Status.OPTIMAL
    assert status(instance_of([pair, ShapeRow(2, deployment=1, within_part=True)], [1, 1], [paired])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of([pair, ShapeRow(2, deployment=1, within_part=True)], [1, 1], [broken]), "occupancy")


def test_groups_of_a_replica_are_counted_each():
    rows = [ShapeRow(4, groups=3, container=Container.ANYWHERE), ShapeRow(4, deployment=1)]
    assert status(instance_of(rows, [1, 1], [free_pool(8, 8)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1, 1], [free_pool(8, 7)]), "occupancy")

"""All groups of a replica lie under the leaf, spine or fabric its times assume."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.solve.instance import Container
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of


def leaves(*rooms: tuple[int, ...]):
    """Scopes by leaf; two leaves hang on one spine, two spines on one fabric."""
    return pool_of([ScopeRow(free, 8, leaf, leaf // 2, leaf // 4) for leaf, scopes in enumerate(rooms) for free in scopes])


def test_a_replica_does_not_straddle_leaves():
    rows = [ShapeRow(8, groups=2, container=Container.LEAF)]
    assert status(instance_of(rows, [1], [leaves((8, 8), (8,))])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1], [leaves((8,), (8,))]), "locality")


def test_a_replica_may_straddle_the_leaves_of_its_spine():
    rows = [ShapeRow(8, groups=2, container=Container.SPINE)]
    assert status(instance_of(rows, [1], [leaves((8,), (8,), ())])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1], [leaves((8,), (), (8,))]), "locality")


def test_a_replica_may_straddle_spines_but_not_fabrics():
    rows = [ShapeRow(8, groups=2, container=Container.FABRIC)]
    assert status(instance_of(rows, [1], [leaves((8,), (), (8,))])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1], [leaves((8,), (), (), (), (8,))]), "locality")


def test_totals_over_leaves_are_not_enough():
    """Three groups of 4 pinned into each leaf of 16 leave 4 + 4 GPUs: the totals admit one more group of 8, no scope does."""
    rows = [ShapeRow(4, groups=3, container=Container.LEAF), ShapeRow(8, deployment=1)]
    assert status(instance_of(rows, [1, 1], [leaves((8, 8), (8, 8))])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [2, 1], [leaves((8, 8), (8, 8))]), "locality")


def test_leaf_and_spine_pins_share_the_leaves():
    rows = [ShapeRow(4, groups=3, container=Container.LEAF), ShapeRow(4, groups=2, container=Container.SPINE, deployment=1)]
    assert status(instance_of(rows, [1, 2], [leaves((8, 4), (8,), (8,))])) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1, 2], [leaves((8, 4), (4,), (4,), (4, 4))]), "locality")

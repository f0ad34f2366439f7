"""Scopes, positions and ranks of replicas."""

from __future__ import annotations

import numpy as np
import pytest

from planner.plan.shape import Degrees
from planner.solve.allocation import Asked, PlacementError, allocate
from planner.solve.instance import Container
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place, touched_whole_scopes
from planner.solve.ranks import number_ranks
from planner.solve.room import Room
from planner.solve.rules import RULES
from tests.solve.fleets import ScopeRow, ShapeRow, free_pool, instance_of, pool_of


def placed(instance):
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.model is not None
    return place(decision.model, decision.values)


def test_groups_are_consecutive_and_in_index_order():
    (first, second) = placed(instance_of([ShapeRow(4)], [2], [free_pool(8)]))
    assert (first.groups[0].positions, second.groups[0].positions) == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_whole_scopes_stay_whole():
    """A group of 4 goes where something runs already, though an empty scope comes first."""
    instance = instance_of([ShapeRow(4)], [1], [free_pool(8, 5)])
    (replica,) = placed(instance)
    assert replica.groups[0].scope == 1
    assert touched_whole_scopes(instance, [replica]) == 0


def test_counts_that_keep_a_scope_whole_are_preferred():
    """One replica of 8 or two of 4 cost the same; the two fit into scopes in use."""
    rows = [ShapeRow(8, capacity=2, price=8), ShapeRow(4, capacity=1, price=4)]
    instance = instance_of(rows, [2], [free_pool(8, 4, 4)])
    found = placed(instance)
    assert [replica.groups[0].scope for replica in found] == [1, 2]


def test_less_communication_goes_before_whole_scopes():
    rows = [ShapeRow(8, capacity=2, price=8, comm=1), ShapeRow(4, capacity=1, price=4, comm=9)]
    (replica,) = placed(instance_of(rows, [2], [free_pool(8, 4, 4)]))
    assert replica.groups[0].scope == 0


def test_pinned_groups_share_a_leaf():
    pool = pool_of([ScopeRow(8, 8, leaf) for leaf in (0, 1, 1, 2)])
    (replica,) = placed(instance_of([ShapeRow(8, groups=2, container=Container.LEAF)], [1], [pool]))
    assert [group.scope for group in replica.groups] == [1, 2]


def test_opened_nodes_are_the_fullest():
    pool = pool_of([ScopeRow(11, 12, nodes=(4, 3, 4))], node_price=10)
    (replica,) = placed(instance_of([ShapeRow(6)], [1], [pool]))
    assert replica.groups[0].positions == (0, 1, 2, 3, 7, 8)


def test_a_small_group_stays_on_one_node_of_a_domain():
    pool = pool_of([ScopeRow(11, 12, nodes=(4, 3, 4))])
    found = placed(instance_of([ShapeRow(4, deployment=0), ShapeRow(3, deployment=1)], [2, 1], [pool]))
    assert [replica.groups[0].positions for replica in found] == [(0, 1, 2, 3), (7, 8, 9, 10), (4, 5, 6)]


def test_allocation_respects_parts():
    given = allocate([[0, 1], [2], [4, 5]], [Asked(1, False), Asked(2, True), Asked(2, False)], 3)
    assert given == ((2,), (0, 1), (4, 5))


def test_positions_outside_parts_are_no_part():
    with pytest.raises(PlacementError):
        allocate([[0], [1, 2]], [Asked(2, True)], 1)


def test_overfull_scopes_are_a_fault():
    with pytest.raises(PlacementError):
        allocate([[0, 1]], [Asked(3, False)])


def test_room_gives_the_tightest_scope_and_says_when_none_is_left():
    room = Room(np.array([8, 3, 5]), np.array([0, 1, 2]))
    everywhere = room.group_by(np.zeros(3, dtype=np.int64))
    assert [room.take(3, everywhere, 0) for _ in range(4)] == [1, 2, 0, 0]
    with pytest.raises(PlacementError):
        room.take(3, everywhere, 0)
    assert room.slots(2, everywhere) == {0: 2}


@pytest.mark.parametrize(
    ("degrees", "expert_ranks"),
    [
        (Degrees(4, 2, 1, 2), [0] * 8),
        (Degrees(4, 2, 8, 2), [0, 1, 2, 3, 4, 5, 6, 7]),
        (Degrees(4, 2, 2, 2), [0, 0, 0, 0, 1, 1, 1, 1]),
    ],
)
def test_ranks_count_stage_then_dp_then_tp(degrees, expert_ranks):
    groups = [[(f"node-{stage}", gpu, f"node-{stage}/nvlink") for gpu in range(8)] for stage in range(2)]
    ranks = number_ranks(degrees, groups)
    assert [rank.rank for rank in ranks] == list(range(16))
    assert [rank.stage for rank in ranks] == [0] * 8 + [1] * 8
    assert [rank.dp_rank for rank in ranks[:8]] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [rank.tp_rank for rank in ranks[:8]] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert [rank.ep_rank for rank in ranks] == expert_ranks * 2
    assert all(rank.rank == (rank.stage * 2 + rank.dp_rank) * 4 + rank.tp_rank for rank in ranks)
    assert ranks[9].scope == "node-1/nvlink"

"""Whole nodes are paid whole."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.solve.instance import Budget
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.rules import RULES
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of


def test_one_gpu_opens_a_node():
    rows = [ShapeRow(2, price=2)]
    pool = pool_of([ScopeRow(8), ScopeRow(1)], node_price=8)
    assert status(instance_of(rows, [1], [pool], budget=Budget(8))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1], [pool], budget=Budget(7)), "billing")


def test_replicas_share_opened_nodes():
    """Three replicas of 4 GPUs need two nodes, four still do, five need a third."""
    pool = pool_of([ScopeRow(8), ScopeRow(8), ScopeRow(8)], node_price=8)
    costs = [decide(instance_of([ShapeRow(4, price=4)], [load], [pool]), SolveOptions(), RULES).stages[0].value for load in (3, 4, 5)]
    assert costs == [16, 16, 24]


def test_a_domain_of_several_nodes_opens_only_those_it_needs():
    """Six GPUs of a domain with nodes free 4, 3 and 4 open the two full ones."""
    rows = [ShapeRow(6, price=6)]
    pool = pool_of([ScopeRow(11, 12, nodes=(4, 3, 4))], node_price=10)
    assert status(instance_of(rows, [1], [pool], budget=Budget(20))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [1], [pool], budget=Budget(19)), "billing")


def test_pools_billed_by_gpu_pay_for_gpus():
    rows = [ShapeRow(2, price=2)]
    assert status(instance_of(rows, [3], [pool_of([ScopeRow(8)])], budget=Budget(6))) is Status.OPTIMAL
    assert status(instance_of(rows, [3], [pool_of([ScopeRow(8)])], budget=Budget(5))) is Status.INFEASIBLE

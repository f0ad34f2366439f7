"""Money and GPUs of a type have limits."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.solve.instance import Budget, GpuBudget
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.fleets import ShapeRow, free_pool, instance_of


def test_money_is_limited():
    rows = [ShapeRow(4, price=10)]
    assert status(instance_of(rows, [2], [free_pool(8)], budget=Budget(20))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [2], [free_pool(8)], budget=Budget(19)), "budget")


def test_gpus_of_a_type_are_limited_over_its_pools():
    rows = [ShapeRow(4, pool=0), ShapeRow(4, pool=1)]
    pools = [free_pool(4), free_pool(4)]

    def limited(gpus: int) -> Budget:
        return Budget(None, (GpuBudget("h100-sxm-80gb", (0, 1), gpus),))

    assert status(instance_of(rows, [2], pools, budget=limited(8))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [2], pools, budget=limited(7)), "budget")


def test_a_limit_on_one_type_leaves_the_other_free():
    rows = [ShapeRow(4, pool=0), ShapeRow(4, pool=1)]
    limited = Budget(None, (GpuBudget("h100-sxm-80gb", (0,), 0),))
    assert status(instance_of(rows, [1], [free_pool(4), free_pool(4)], budget=limited)) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [2], [free_pool(4), free_pool(4)], budget=limited), "budget")


def test_the_budget_limits_the_fastest_plan_too():
    rows = [ShapeRow(8, price=80, tpot=5), ShapeRow(4, price=20, tpot=9)]
    instance = instance_of(rows, [1], [free_pool(8)], budget=Budget(20), objective="latency")
    assert status(instance) is Status.OPTIMAL
    tight = instance_of(rows, [1], [free_pool(8)], budget=Budget(19), objective="latency")
    assert_only_this_rule_forbids(tight, "budget")

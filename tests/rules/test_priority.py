"""Load may go unserved, the least important first."""

from __future__ import annotations

from fractions import Fraction

from planner.plan.outcome import Status
from planner.solve.instance import DeploymentRules, Resilience
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.rules import RULES
from tests.rules.pairs import status
from tests.solve.fleets import ScopeRow, ShapeRow, free_pool, instance_of, pool_of


def elastic(*levels: int, part: Fraction = Fraction(1)) -> list[DeploymentRules]:
    return [DeploymentRules(priority=level, may_go_unserved=part) for level in levels]


def counts(instance) -> tuple[int, ...]:
    """Replicas of every shape of the instance, of which the decision may have left some out."""
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.model is not None
    found = dict(zip(decision.model.instance.source.tolist(), decision.counts, strict=True))
    return tuple(found.get(source, 0) for source in instance.source.tolist())


def test_only_this_rule_lets_a_load_go_unserved():
    instance = instance_of([ShapeRow(4, capacity=10)], [20], [free_pool(4)], rules=elastic(0))
    assert status(instance) is Status.OPTIMAL
    assert status(instance, without="priority") is Status.INFEASIBLE


def test_no_more_goes_unserved_than_allowed():
    rows = [ShapeRow(4, capacity=10)]
    assert status(instance_of(rows, [20], [free_pool(4)], rules=elastic(0, part=Fraction(1, 2)))) is Status.OPTIMAL
    assert status(instance_of(rows, [20], [free_pool(4)], rules=elastic(0, part=Fraction(2, 5)))) is Status.INFEASIBLE


def test_the_more_important_deployment_is_served_first():
    rows = [ShapeRow(4, capacity=10, price=1, deployment=0), ShapeRow(4, capacity=10, price=9, deployment=1)]
    assert counts(instance_of(rows, [10, 10], [free_pool(4)], rules=elastic(1, 0))) == (1, 0)
    assert counts(instance_of(rows, [10, 10], [free_pool(4)], rules=elastic(0, 1))) == (0, 1)


def test_serving_comes_before_money():
    """Nothing would be cheapest; all that fits is served."""
    rows = [ShapeRow(4, capacity=10, price=100)]
    assert counts(instance_of(rows, [30], [free_pool(8)], rules=elastic(0))) == (2,)


def test_importance_is_no_weight():
    """One important sequence goes before nine hundred others."""
    rows = [ShapeRow(4, capacity=1, deployment=0), ShapeRow(4, capacity=900, deployment=1)]
    assert counts(instance_of(rows, [1, 900], [free_pool(4)], rules=elastic(1, 0))) == (1, 0)


def test_a_deployment_without_any_shape_may_go_unserved():
    rows = [ShapeRow(4, capacity=10, deployment=0)]
    assert status(instance_of(rows, [10, 10], [free_pool(4)], rules=elastic(0, 0))) is Status.OPTIMAL
    assert status(instance_of(rows, [10, 10], [free_pool(4)], rules=elastic(0, 0, part=Fraction(1, 2)))) is Status.INFEASIBLE


def test_what_is_promised_survives():
    """Three nodes of one replica each: 20 of 30 can be promised, as any one node may go."""
    rules = [DeploymentRules(resilience=Resilience("node"), may_go_unserved=Fraction(1, 3))]
    rows = [ShapeRow(4, capacity=10)]
    assert status(instance_of(rows, [30], [pool_of([ScopeRow(4)] * 3)], rules=rules)) is Status.OPTIMAL
    assert status(instance_of(rows, [33], [pool_of([ScopeRow(4)] * 3)], rules=rules)) is Status.INFEASIBLE


def test_the_fastest_plan_serves_first():
    rows = [ShapeRow(8, capacity=10, tpot=5), ShapeRow(4, capacity=10, tpot=9)]
    instance = instance_of(rows, [20], [free_pool(8)], objective="latency", rules=elastic(0))
    assert counts(instance)[-1] == 2

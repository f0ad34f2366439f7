"""Decide an instance with all rules, or with one left out."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.solve.instance import Instance
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.rules import RULES


def status(instance: Instance, without: str = "") -> Status:
    assert not without or without in {rule.name for rule in RULES}
    return decide(instance, SolveOptions(), [rule for rule in RULES if rule.name != without]).status


def assert_only_this_rule_forbids(instance: Instance, rule: str) -> None:
    """The instance is impossible, and possible as soon as the rule is left out."""
    assert status(instance) is Status.INFEASIBLE
    assert status(instance, without=rule) is Status.OPTIMAL

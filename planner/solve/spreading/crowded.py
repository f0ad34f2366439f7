"""Deployments that cannot keep apart even with the fleet to themselves, and how many of their replicas would have to share a domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.plan.outcome import Status
from planner.solve.asker import gallop, without_deployment
from planner.solve.instance import Instance, Spread
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.rule_repair import RuleRepair
from planner.solve.rules import RULES
from planner.solve.work import Work

MOST = 1 << 10
"""More replicas in one domain than this are not worth proposing."""

PER_QUESTION = 0.05
"""Work that one question about one deployment is counted as."""


def crowded(instance: Instance, options: SolveOptions, work: Work) -> Iterator[RuleRepair]:
    """Spreads that one deployment alone cannot keep, each with the least `most` that it could, if the others were not there."""
    if instance.objective == "throughput":
        # Less is served then, rather than nothing.
        return
    instance = replace(instance, objective="cost")
    for deployment in range(instance.deployments):
        spread = instance.rules_of(deployment).apart
        if spread is None or work.over:
            continue
        alone = instance
        for other in range(instance.deployments):
            alone = alone if other == deployment else without_deployment(alone, other)

        def enough(most: int, alone: Instance = alone, deployment: int = deployment, spread: Spread = spread) -> bool | None:
            work.spend(PER_QUESTION)
            if work.over:
                return None
            rules = list(alone.rules)
            rules[deployment] = replace(rules[deployment], spread=replace(spread, most=most))
            found = decide(replace(alone, rules=tuple(rules)), options, RULES)
            return None if found.status is Status.UNKNOWN else found.status is not Status.INFEASIBLE

        if enough(spread.most) is False:
            least, below = gallop(enough, spread.most + 1, MOST)
            yield RuleRepair(deployment, spread, least, nearest=below == least)

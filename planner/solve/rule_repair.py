"""How far the rules about places would have to give way for a plan to exist: one rule at a time, each by as little as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from planner.solve.instance import DeploymentRules, Instance, ReplicaLimits, Resilience, Spread

PERCENT = 100

MOST_MORE = 1 << 12
"""More replicas than this above the limit are not worth proposing."""


@dataclass(frozen=True, slots=True)
class RuleRepair:
    """A rule of a deployment with the value it has, and the nearest value with which there is a plan; None where only leaving it out helps.

    A rule that is None is the choice of GPUs by `pin` and `forbid`. `part` names the limit on replicas that is in the way: min, max or one_shape.
    `nearest` tells whether it is proved that no nearer value is enough.
    """

    deployment: int
    rule: Spread | Resilience | ReplicaLimits | None
    enough: int | None
    part: str = ""
    nearest: bool = True


Ask = Callable[[Instance], bool | None]
"""Tells whether a question has a plan; None where that is not known."""


def rule_repairs(instance: Instance, possible: Ask) -> Iterator[RuleRepair]:
    """Rules of which giving way alone makes a plan possible; `possible` asks whether a question has one.

    A share that must be left is lowered in whole per cent, a number of replicas in one domain is raised by whole replicas.
    """
    for deployment in range(instance.deployments):
        rules = instance.rules_of(deployment)
        if rules.resilience is not None and possible(_with(instance, deployment, replace(rules, resilience=None))):
            resilience = rules.resilience

            def left(
                percent: int, deployment: int = deployment, rules: DeploymentRules = rules, old: Resilience = resilience
            ) -> bool | None:
                changed = replace(old, keep=Fraction(percent, PERCENT))
                return possible(_with(instance, deployment, replace(rules, resilience=changed)))

            most = -(-resilience.keep * PERCENT // 1) - 1
            enough, nearest = _last(int(most), left)
            yield RuleRepair(deployment, resilience, enough, nearest=nearest)
        if rules.spread is not None and possible(_with(instance, deployment, replace(rules, spread=None))):
            spread = rules.spread

            def together(fewer: int, deployment: int = deployment, rules: DeploymentRules = rules, old: Spread = spread) -> bool | None:
                changed = replace(old, most=old.most + PERCENT - fewer)
                return possible(_with(instance, deployment, replace(rules, spread=changed)))

            fewer, nearest = _last(PERCENT - 1, together)
            yield RuleRepair(deployment, spread, None if fewer is None else spread.most + PERCENT - fewer, nearest=nearest)

        if rules.only and possible(_with(instance, deployment, replace(rules, only=""))):
            yield RuleRepair(deployment, None, None)
        yield from _limits(instance, deployment, possible)


def _limits(instance: Instance, deployment: int, possible: Ask) -> Iterator[RuleRepair]:
    """Limits on the number of replicas that are in the way alone: a lower least, a higher most, unlike shapes."""
    limits = instance.limits[deployment]

    def holds(changed: ReplicaLimits) -> bool | None:
        every = list(instance.limits)
        every[deployment] = changed
        return possible(replace(instance, limits=tuple(every)))

    if limits.minimum and holds(replace(limits, minimum=0)):
        lower, nearest = _last(limits.minimum - 1, lambda least: holds(replace(limits, minimum=least)))
        yield RuleRepair(deployment, limits, lower or 0, "min", nearest)
    if limits.maximum is not None and holds(replace(limits, maximum=limits.maximum + MOST_MORE)):
        most = limits.maximum + MOST_MORE
        fewer, nearest = _last(MOST_MORE, lambda less: holds(replace(limits, maximum=most - less)))
        yield RuleRepair(deployment, limits, most - (fewer or 0), "max", nearest)
    if limits.one_shape and holds(replace(limits, one_shape=False)):
        yield RuleRepair(deployment, limits, None, "one_shape")


def _with(instance: Instance, deployment: int, rules: DeploymentRules) -> Instance:
    changed = list(instance.rules)
    changed[deployment] = rules
    return replace(instance, rules=tuple(changed))


def _last(high: int, holds: Callable[[int], bool | None]) -> tuple[int | None, bool]:
    """Largest number found from 1 to `high` that holds, where all below a number that holds do too, and whether the next is proved not to; None when 1 does not."""
    if high < 1:
        return None, True
    first = holds(1)
    if not first:
        return None, first is False
    low, high = 1, high + 1
    # Nobody asks about more than there is.
    proved = high
    while high - low > 1:
        middle = (low + high) // 2
        answer = holds(middle)
        if answer:
            low = middle
        else:
            high, proved = middle, middle if answer is False else proved
    return low, proved == low + 1

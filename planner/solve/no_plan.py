"""Sentences for the user when there is no plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.diagnostics import Diagnostic, Severity
from planner.quantities import format_money
from planner.solve import cpsat
from planner.solve.instance import Instance, Spread
from planner.solve.options import SolveOptions
from planner.solve.repair import Repairs, repairs
from planner.solve.rule_repair import RuleRepair
from planner.solve.rules import RULES
from planner.solve.running import scopes_of
from planner.solve.scaling import MONEY_UNITS, SHARE_UNITS

if TYPE_CHECKING:
    from planner.topology.fabric import Fabric

REPAIR_SHARE = 0.05
"""Share of the effort that each question about a repair gets."""

NAMED = 4
"""Most scopes that one sentence names."""


def why_no_plan(instance: Instance, fabric: Fabric, options: SolveOptions, names: Sequence[str] = ()) -> tuple[Diagnostic, ...]:
    """Smallest repairs as diagnostics; nothing when a deployment has no shape at all, which the menu explains."""
    # What runs may always be left, so that it is in nobody's way.
    instance = instance.without_seats()
    if len(set(instance.shapes.deployment.tolist())) < instance.deployments:
        return ()
    limits = cpsat.Limits(options.effort * REPAIR_SHARE, options.time_limit, seed=options.seed)
    found = repairs(instance, RULES, limits)
    return (*_sentences(instance, fabric, found), *(_of_rule(repair, names[repair.deployment]) for repair in found.rules))


def _of_rule(repair: RuleRepair, name: str) -> Diagnostic:
    """Say that one rule of one deployment is in the way, and what it could ask instead."""
    rule, enough = repair.rule, repair.enough
    if rule is None:
        message = f"{name} may not use GPUs without which there is no plan"
        return _told("NOT_ENOUGH_GPUS", message, "name more GPUs in `pin`, or fewer in `forbid`")
    if isinstance(rule, Spread):
        message = f"{name} cannot be spread so that at most {rule.most} of its replicas share a {rule.kind}"
        hint = "leave `spread` out" if enough is None else f"write `spread: {{over: {rule.kind}, most: {enough}}}`"
        return _told("SPREAD_NOT_KEPT", message, hint)
    asked = f"{float(100 * rule.keep):g} %"
    message = f"no plan keeps {asked} of {name} after the loss of any one {rule.kind}"
    hint = "leave `resilience` out" if enough is None else f"write `resilience: {{lose: {rule.kind}, keep: {enough}%}}`"
    return _told("NOT_RESILIENT", message, hint)


def _sentences(instance: Instance, fabric: Fabric, found: Repairs) -> Iterator[Diagnostic]:
    budget = instance.budget
    if found.per_hour is not None and budget.per_hour is not None:
        least = format_money(found.per_hour / MONEY_UNITS, fabric.currency)
        allowed = format_money(budget.per_hour / MONEY_UNITS, fabric.currency)
        yield _told("BUDGET_EXCEEDED", f"the cheapest plan costs {least}, the budget is {allowed}", f"raise the budget to {least}")
    used = dict(found.gpus)
    for limited in budget.gpus if used else ():
        needed = sum(used.get(pool, 0) for pool in limited.pools)
        if needed > limited.limit:
            yield _told(
                "GPU_BUDGET_EXCEEDED",
                f"the smallest plan uses {needed} {limited.name} GPUs, the budget allows {limited.limit}",
                f"allow {needed} {limited.name}",
            )
    if found.share:
        yield _told(
            "LOAD_NOT_COVERED",
            f"the free GPUs serve at most {100 * found.share / SHARE_UNITS:.1f} % of every load",
            "lower the load to that, or make room",
        )
    if found.freed:
        total = sum(gpus for _, _, gpus in found.freed)
        places = [_place(instance, fabric, pool, scope, gpus) for pool, scope, gpus in found.freed]
        shown = ", ".join(places[:NAMED]) + (f" and {len(places) - NAMED} more scopes" if len(places) > NAMED else "")
        yield _told("NOT_ENOUGH_GPUS", f"{total} more free GPUs would do", f"free {shown}")
    for pool, scopes in found.nodes:
        kind = fabric.pools[pool]
        size = int(instance.pools[pool].capacity.max())
        nodes = scopes * max(1, size // kind.gpus_per_node)
        plural = "s" if nodes > 1 else ""
        yield _told(
            "NOT_ENOUGH_GPUS",
            f"{nodes} more empty {kind.gpu.name} node{plural} ({scopes * size} GPUs) would do",
            f"add {nodes} node{plural} of {kind.gpu.name}",
        )


def _place(instance: Instance, fabric: Fabric, pool: int, scope: int, gpus: int) -> str:
    name = fabric.scopes.name(int(scopes_of(fabric, pool)[scope]))
    return f"{gpus} in {name}, which has {int(instance.pools[pool].free[scope])} free"


def _told(code: str, message: str, hint: str) -> Diagnostic:
    return Diagnostic(code, message, hint, Severity.WARNING)

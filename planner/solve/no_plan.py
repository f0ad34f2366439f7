"""Sentences for the user when there is no plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.diagnostics import Diagnostic, Severity
from planner.quantities import format_money
from planner.solve import cpsat
from planner.solve.asker import Asker, fewer_shapes
from planner.solve.dominance import worth_keeping
from planner.solve.instance import NO_RULES, Budget, DeploymentRules, Instance, ReplicaLimits, Spread
from planner.solve.options import SolveOptions
from planner.solve.repair import EVENLY, NEW_LEAF, Added, Repairs, repairs
from planner.solve.rule_repair import RuleRepair
from planner.solve.rules import RULES
from planner.solve.running import scopes_of
from planner.solve.scaling import MONEY_UNITS
from planner.solve.spreading.crowded import crowded
from planner.solve.spreading.question import far_apart
from planner.solve.surviving import large
from planner.solve.work import Work, allowance

if TYPE_CHECKING:
    from planner.topology.fabric import Fabric

REPAIR_SHARE = 0.05
"""Share of the effort that each question about a repair gets."""

CENT = MONEY_UNITS // 100
"""Integer units of money in a hundredth."""

NAMED = 4
"""Most scopes that one sentence names."""


def why_no_plan(
    instance: Instance, fabric: Fabric, options: SolveOptions, names: Sequence[str] = (), work: Work | None = None
) -> tuple[Diagnostic, ...]:
    """Smallest repairs as diagnostics; nothing when a deployment has no shape at all, which the menu explains.

    All questions share one allowance of `work`; what is not proved least when it ends, and what was not looked at, is told as such.
    """
    # What runs may always be left, so that it is in nobody's way.
    instance = instance.without_seats()
    if len(set(instance.shapes.deployment.tolist())) < instance.deployments:
        return ()
    work = allowance(options.time_limit) if work is None else work
    more = ""
    kept = instance.keep(worth_keeping(instance, ties=False))
    if large(kept):
        # One question of a repair would count every place again: only whether the losses are in the way is asked.
        lost = " or ".join(sorted({rules.resilience.kind for rules in instance.rules if rules.resilience is not None}))
        instance = _with_rules(instance, tuple(replace(rules, resilience=None) for rules in instance.rules))
        if plan_found(instance, options, work):
            message = f"no plan keeps what is asked after the loss of any one {lost}, though there is one that loses nothing"
            return (_told("NOT_RESILIENT", message, "ask for less in `keep`, lower the load, or add nodes under other leaves"),)
        more = f" without the loss of a {lost}, and with it more may be needed"
    elif far_apart(kept):
        small = replace(options, effort=options.effort * REPAIR_SHARE, explain=False, progress=None, log=None)
        alone = tuple(_of_rule(repair, names[repair.deployment]) for repair in crowded(instance, small, work))
        if alone:
            return alone
        whose = [name for name, rules in zip(names, instance.rules, strict=False) if rules.spread is not None]
        instance = _with_rules(instance, tuple(replace(rules, spread=None) for rules in instance.rules))
        if plan_found(instance, options, work):
            who = " and ".join(whose[:NAMED]) if len(whose) <= NAMED else f"{', '.join(whose[:NAMED])} and {len(whose) - NAMED} more"
            message = f"no plan keeps the replicas of {who} apart as asked, though there is one that does not"
            return (_told("SPREAD_NOT_KEPT", message, "allow more replicas in `most`, lower the load, or add nodes"),)
        more = " where replicas need not keep apart, and with that more may be needed"
    found = repairs(instance, RULES, repair_limits(options), work)
    told = [*_sentences(instance, fabric, found), *(_of_rule(repair, names[repair.deployment]) for repair in found.rules)]
    if more:
        told = [replace(item, message=item.message + more) for item in told]
    if found.open:
        told.append(not_examined([_kind(fabric, kind) for kind in found.open]))
    return tuple(told) or (_several(instance, names),)


def _with_rules(instance: Instance, rules: tuple[DeploymentRules, ...]) -> Instance:
    return replace(instance, rules=() if all(rule == NO_RULES for rule in rules) else rules)


def repair_limits(options: SolveOptions) -> cpsat.Limits:
    """Limits of each question about a repair, besides the allowance of work that all share."""
    return cpsat.Limits(options.effort * REPAIR_SHARE, options.time_limit, seed=options.seed)


def plan_found(instance: Instance, options: SolveOptions, work: Work | None = None) -> bool:
    """Whether any plan is found within the effort of a repair."""
    work = allowance(options.time_limit) if work is None else work
    return Asker(RULES, repair_limits(options), work).possible(fewer_shapes(instance)) is True


def not_examined(kinds: Sequence[str]) -> Diagnostic:
    """Say which kinds of repair the work did not suffice for."""
    message = f"not decided within the work for repairs: whether {', or whether '.join(kinds)}"
    return _told("REPAIRS_NOT_EXAMINED", message, "try the change with --set, or loosen more at once")


def _kind(fabric: Fabric, kind: str | int) -> str:
    if isinstance(kind, int):
        return f"more {fabric.pools[kind].gpu.name} nodes would do"
    return {
        "free": "freeing GPUs would do",
        "load": "a lower load would do",
        "budget": "a larger budget would do",
        "rules": "loosening one rule would do",
    }[kind]


def _several(instance: Instance, names: Sequence[str]) -> Diagnostic:
    """Say that no single change was found that helps, and what there is to loosen."""
    asked = ["the budget"] if instance.budget != Budget() else []
    for deployment, name in enumerate(names):
        rules, limits = instance.rules_of(deployment), instance.limits[deployment]
        parts = {
            "resilience": rules.resilience,
            "spread": rules.spread,
            "pin and forbid": rules.only,
            "replicas": limits != ReplicaLimits(),
        }
        asked.extend(f"{part} of {name}" for part, there in parts.items() if there)
    hint = f"loosen more than one of: free GPUs, load, {', '.join(asked)}" if asked else "make much more room, or lower the load"
    return _told("NO_SINGLE_REPAIR", "no single change was found that makes a plan possible", hint)


def _of_rule(repair: RuleRepair, name: str) -> Diagnostic:
    """Say that one rule of one deployment is in the way, and what it could ask instead."""
    rule, enough = repair.rule, repair.enough
    if rule is None:
        message = f"{name} may not use GPUs without which there is no plan"
        return _told("NOT_ENOUGH_GPUS", message, "name more GPUs in `pin`, or fewer in `forbid`")
    if isinstance(rule, ReplicaLimits):
        return _of_limits(rule, repair, name)
    if isinstance(rule, Spread):
        message = f"{name} cannot be spread so that at most {rule.most} of its replicas share a {rule.kind}"
        hint = "leave `spread` out" if enough is None else f"write `spread: {{over: {rule.kind}, most: {enough}}}`"
        return _told("SPREAD_NOT_KEPT", message, hint)
    asked = f"{float(100 * rule.keep):g} %"
    message = f"no plan keeps {asked} of {name} after the loss of any one {rule.kind}"
    hint = "leave `resilience` out" if enough is None else f"write `resilience: {{lose: {rule.kind}, keep: {enough}%}}`"
    return _told("NOT_RESILIENT", message, hint)


def _of_limits(limits: ReplicaLimits, repair: RuleRepair, name: str) -> Diagnostic:
    """Say which limit on the number of replicas is in the way."""
    if repair.part == "min":
        hint = f"write `replicas: {{min: {repair.enough}}}`" if repair.enough else "leave `replicas.min` out"
        return _told("TOO_FEW_REPLICAS", f"{name} cannot have as many as {limits.minimum} replicas", hint)
    if repair.part == "max":
        return _told("TOO_MANY_REPLICAS", f"{name} cannot do with {limits.maximum} replicas", f"write `replicas: {{max: {repair.enough}}}`")
    return _told("SHAPES_DIFFER", f"{name} cannot have all replicas of one shape", "leave `replicas.one_shape` out")


def _sentences(instance: Instance, fabric: Fabric, found: Repairs) -> Iterator[Diagnostic]:
    budget = instance.budget
    if found.per_hour is not None and budget.per_hour is not None:
        # Rounded up to what money is written in, so that the budget named is enough.
        least, proved = (
            format_money(-(-money // CENT) / (MONEY_UNITS // CENT), fabric.currency) for money in (found.per_hour, found.per_hour_proved)
        )
        allowed = format_money(budget.per_hour / MONEY_UNITS, fabric.currency)
        costs = f"the cheapest plan costs {least}" if least == proved else f"a plan costs {least} and none less than {proved}"
        yield _told("BUDGET_EXCEEDED", f"{costs}, the budget is {allowed}", f"raise the budget to {least}")
    for position, needed in found.gpus:
        limited = budget.gpus[position]
        yield _told(
            "GPU_BUDGET_EXCEEDED",
            f"{'the smallest' if found.gpus_proved else 'a'} plan uses {needed} {limited.name} GPUs, the budget allows {limited.limit}",
            f"allow {needed} {limited.name}" + (", and raise the budget too" if found.per_hour is not None else ""),
        )
    if found.served is not None:
        percent, most = (f"{parts // 10}.{parts % 10} %" for parts in (found.served, found.served_proved))
        every = "every load" if instance.deployments > 1 else "the load"
        ruled = (
            "no more" if found.served == found.served_proved else "more was not ruled out" if most == "99.9 %" else f"not more than {most}"
        )
        yield _told(
            "LOAD_NOT_COVERED", f"the free GPUs serve {percent} of {every} and {ruled}", f"lower {every} to {percent}, or make room"
        )
    if found.freed.places:
        total = found.freed.total
        places = [_place(instance, fabric, pool, scope, gpus) for pool, scope, gpus in found.freed.places]
        shown = ", ".join(places[:NAMED]) + (f" and {_rest(fabric, found.freed.places[NAMED:])}" if len(places) > NAMED else "")
        message = f"{_at_most(total, found.freed.proved)}{total} more free GPU{'s' if total > 1 else ''} would do{_ruled_out(total, found.freed.proved)}"
        yield _told("NOT_ENOUGH_GPUS", message, f"free {shown}")
    for more in found.nodes:
        yield _nodes(instance, fabric, more)


def _nodes(instance: Instance, fabric: Fabric, more: Added) -> Diagnostic:
    """Say how many nodes of a pool to add, on which leaf where that matters, and what they cost."""
    kind = fabric.pools[more.pool]
    size = int(instance.pools[more.pool].capacity.max())
    nodes = more.scopes * max(1, size // kind.gpus_per_node)
    plural = "s" if nodes > 1 else ""
    where = {None: "", NEW_LEAF: " on a leaf of their own", EVENLY: " alike on every leaf"}.get(more.leaf)
    where = f" on {fabric.leaf_name(more.leaf)}" if where is None and more.leaf is not None else where
    price = "" if kind.price_per_node is None else f", {format_money(nodes * kind.price_per_node, fabric.currency)} for all of it"
    proved = nodes if more.proved is None else more.proved * max(1, size // kind.gpus_per_node)
    message = f"{_at_most(nodes, proved)}{nodes} more empty {kind.gpu.name} node{plural} ({more.scopes * size} GPUs){where} would do{_ruled_out(nodes, proved)}"
    return _told("NOT_ENOUGH_GPUS", message, f"add {nodes} node{plural} of {kind.gpu.name}{where}{price}")


def _at_most(found: int, proved: int) -> str:
    return "" if proved >= found else "at most "


def _ruled_out(found: int, proved: int) -> str:
    """What is known of less than was found: nothing, or below which number it is not enough."""
    if proved >= found:
        return ""
    return "; fewer was not ruled out" if proved <= 1 else f"; fewer than {proved} would not"


def _rest(fabric: Fabric, places: Sequence[tuple[int, int, int]]) -> str:
    """Further places, as GPUs by pool."""
    return f"{sum(gpus for _, _, gpus in places)} in {len(places)} more scopes of " + " and ".join(
        dict.fromkeys(fabric.pools[pool].gpu.name for pool, _, _ in places)
    )


def _place(instance: Instance, fabric: Fabric, pool: int, scope: int, gpus: int) -> str:
    name = fabric.scopes.name(int(scopes_of(fabric, pool)[scope]))
    number = int(scopes_of(fabric, pool)[scope])
    failed = sum(fabric.state(gpu) == "failed" for gpu in fabric.scopes.gpus(number))
    broken = f" and {failed} failed" if failed else ""
    return f"{gpus} in {name}, which has {int(instance.pools[pool].free[scope])} free{broken}"


def _told(code: str, message: str, hint: str) -> Diagnostic:
    return Diagnostic(code, message, hint, Severity.WARNING)

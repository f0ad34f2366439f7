"""Why there is no plan, as the smallest change that would make one: money, load, GPUs to free, nodes to add, a rule to loosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.interrupts import asked
from planner.solve import cpsat, highs
from planner.solve.instance import Budget, Instance
from planner.solve.model import Model, Rule, build
from planner.solve.program import Program, add_term
from planner.solve.rule_repair import RuleRepair, rule_repairs

PARTS = 1000
"""Parts of every load: what can be served is told in these, rounded down."""

TREE = 300
"""Nodes of the search tree that a question about a repair gets from HiGHS."""

MOST_VARIABLES = 2_000
"""Larger programs of replicas counted by failure domain are not tried for a repair."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """What would help, each None or empty where it would not, or is not known.

    `per_hour` [1e-6 $/h] is the least budget that suffices, `gpus` the limits on GPU types to raise, by position in the budget, and what to raise
    them to; where both are given, both are needed. The others suffice alone, under the budget as it is. `served` [1/1000] is the share of
    every load that can be served at once. `freed` lists (pool, scope, GPUs) to free, least in total. `nodes` says for a pool how many empty scopes to add,
    fewest first. `rules` stand in the way of a plan alone.
    """

    per_hour: int | None = None
    gpus: tuple[tuple[int, int], ...] = ()
    served: int | None = None
    freed: tuple[tuple[int, int, int], ...] = ()
    nodes: tuple[Added, ...] = ()
    rules: tuple[RuleRepair, ...] = ()


NEW_LEAF, EVENLY = -1, -2
"""Leaves of new scopes that are no leaf of the pool."""


@dataclass(frozen=True, slots=True)
class Added:
    """Empty scopes to add to a pool: `leaf` is the leaf they hang on, NEW_LEAF or EVENLY over all leaves, None where it does not matter."""

    pool: int
    scopes: int
    leaf: int | None = None


class Asker:
    """Small solves of changed questions, within a small effort each."""

    def __init__(self, rules: Sequence[Rule], limits: cpsat.Limits) -> None:
        self.rules, self.limits = rules, limits

    def least(self, instance: Instance, objective: str) -> tuple[Model, tuple[int, ...]] | None:
        """Best plan of a question by money or GPUs; None when none is found, or nobody waits for it any more."""
        if asked():
            return None
        model = build(replace(instance, objective=objective), self.rules)
        result = cpsat.minimise(model.program, model.cost if objective == "cost" else model.gpus(), self.limits)
        return None if result.values is None else (model, result.values)

    def possible(self, instance: Instance) -> bool:
        """Whether any plan is found, cheap questions first.

        What is impossible without the rules about places is impossible; what single groups can do is possible. Only between the two all shapes are
        tried, and only while they make a program of a size that is answered at once: a repair of a large fleet may be larger than the least.
        """
        if asked():
            # Nobody waits for it any more.
            return False
        if instance.objective != "throughput":
            instance = replace(instance, objective="cost")
        if not any(rule.kinds for rule in instance.rules):
            return self._solvable(build(instance, self.rules).program)
        loose = replace(instance, rules=tuple(replace(rule, spread=None, resilience=None, only="") for rule in instance.rules))
        if not self._solvable(build(loose, self.rules).program):
            return False
        single = _single_groups(instance)
        if single is not instance and self._solvable(build(single, self.rules).program):
            return True
        program = build(instance, self.rules).program
        return (single is instance or len(program.lower) <= MOST_VARIABLES) and self._solvable(program)

    def _solvable(self, program: Program) -> bool:
        """Whether a solution is found; floating point is fast here, and its solutions are checked in integers."""
        if highs.available():
            found = highs.minimise(program, {}, nodes=TREE, seconds=self.limits.seconds, seed=self.limits.seed)
            if found.values is not None or found.closed:
                return found.values is not None
        return cpsat.minimise(program, {}, self.limits).values is not None


def _single_groups(instance: Instance) -> Instance:
    """Only shapes of one group, where every deployment has one; else all."""
    alone = instance.keep(instance.shapes.groups == 1)
    fewer = len(alone.shapes) < len(instance.shapes)
    return alone if fewer and set(alone.shapes.deployment.tolist()) == set(instance.shapes.deployment.tolist()) else instance


def repairs(instance: Instance, rules: Sequence[Rule], limits: cpsat.Limits) -> Repairs:
    """Find the smallest repairs of a question without a plan."""
    from planner.solve.more_room import added, freed

    asker = Asker(rules, limits)
    larger = _budget(asker, instance)
    if larger is not None:
        return larger
    return Repairs(
        served=_served(asker, instance),
        freed=tuple(freed(asker, instance)),
        nodes=tuple(sorted(added(asker, instance), key=lambda found: (found.scopes, found.pool))),
        rules=tuple(rule_repairs(instance, asker.possible)),
    )


def _budget(asker: Asker, instance: Instance) -> Repairs | None:
    """Raise the limit on money alone, the limits on GPU types alone, or both; None where the budget is not what is in the way."""
    budget = instance.budget
    if budget == Budget() or instance.objective == "throughput":
        return None
    if budget.per_hour is not None:
        found = _least_money(asker, replace(instance, budget=replace(budget, per_hour=None)))
        if found is not None:
            return Repairs(per_hour=found)
    raised = _raised(asker, instance)
    if raised:
        return Repairs(gpus=raised)
    money = _least_money(asker, replace(instance, budget=Budget())) if budget.gpus and budget.per_hour is not None else None
    if money is None:
        return None
    return Repairs(per_hour=money, gpus=_raised(asker, replace(instance, budget=replace(budget, per_hour=money))))


def _least_money(asker: Asker, instance: Instance) -> int | None:
    found = asker.least(instance, "cost")
    if found is None:
        return None
    model, values = found
    return sum(price * values[variable] for variable, price in model.cost.items())


def _raised(asker: Asker, instance: Instance) -> tuple[tuple[int, int], ...]:
    """Fewest GPUs by which the limits on types must be raised together, as new limits by position; empty where that does not help."""
    budget = instance.budget
    if not budget.gpus:
        return ()
    model = build(replace(instance, budget=replace(budget, gpus=()), objective="cost"), asker.rules)
    gpus = instance.shapes.gpus.tolist()
    used = []
    over: dict[int, int] = {}
    for limited in budget.gpus:
        row: dict[int, int] = {}
        for pool in limited.pools:
            for shape in instance.of_pool(pool).tolist():
                add_term(row, model.count[shape], gpus[shape])
        used.append(row)
        most = sum(count * model.program.upper[variable] for variable, count in row.items())
        excess = model.program.add_variable(0, max(0, most - limited.limit))
        model.program.add_row("over", {**row, excess: -1}, upper=limited.limit)
        over[excess] = 1
    result = cpsat.minimise(model.program, over, asker.limits)
    values = result.values
    if values is None:
        return ()
    needed = [sum(count * values[variable] for variable, count in row.items()) for row in used]
    return tuple((position, need) for position, need in enumerate(needed) if need > budget.gpus[position].limit)


def _served(asker: Asker, instance: Instance) -> int | None:
    """Largest share of every load with which there is a plan [1/1000]; None where there is none, or lower loads do not help."""
    if instance.objective == "throughput":
        return None

    def enough(parts: int) -> bool:
        return asker.possible(replace(instance, loads=-(-instance.loads * parts // PARTS)))

    if not enough(1):
        return None
    low, high = 1, PARTS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low

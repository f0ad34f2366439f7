"""Why there is no plan, as the smallest change that would make one: money, load, GPUs to free, nodes to add, a rule to loosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.asker import Asker, fewer_shapes, loads_alone
from planner.solve.instance import Budget, Instance, ReplicaLimits
from planner.solve.model import Rule
from planner.solve.program import Program, Row, add_term
from planner.solve.rule_repair import RuleRepair, rule_repairs
from planner.solve.work import Work

PARTS = 1000
"""Parts of every load: what can be served is told in these, rounded down."""

EXACT = 2**60
"""Largest sum of a row that a solver is given."""

FREED_PART, SERVED_PART, NODES_PART = 0.25, 0.4, 0.6
"""Parts of what is left of the work that one kind of repair may take, so that a hard kind leaves some for those after it."""


@dataclass(frozen=True, slots=True)
class Freed:
    """GPUs to free as (pool, scope, GPUs), and the total below which it is proved that there is no plan; no places where none help."""

    places: tuple[tuple[int, int, int], ...] = ()
    proved: int = 0

    @property
    def total(self) -> int:
        """GPUs to free over all places."""
        return sum(gpus for _, _, gpus in self.places)


@dataclass(frozen=True, slots=True)
class Repairs:
    """What would help, each None or empty where it would not, or is not known.

    `per_hour` [1e-6 $/h] is a budget that suffices and `per_hour_proved` one below which none does, `gpus` the limits on GPU types to raise, by position in the budget, and what to raise
    them to, least in total where `gpus_proved`; where both are given, both are needed. The others suffice alone, under the budget as it is. `served` [1/1000] is a share of
    every load that can be served at once, and more than `served_proved` cannot. `freed` are the GPUs to free. `nodes` says for a pool how many empty scopes to add,
    fewest first. `rules` stand in the way of a plan alone. `open` names the kinds of which none was found and none was ruled out: `free`, `load`, `budget`, `rules`, or the pool of nodes to add.
    """

    per_hour: int | None = None
    per_hour_proved: int = 0
    gpus: tuple[tuple[int, int], ...] = ()
    gpus_proved: bool = True
    served: int | None = None
    served_proved: int = PARTS - 1
    freed: Freed = Freed()
    nodes: tuple[Added, ...] = ()
    rules: tuple[RuleRepair, ...] = ()
    open: tuple[str | int, ...] = ()


NEW_LEAF, EVENLY = -1, -2
"""Leaves of new scopes that are no leaf of the pool."""


@dataclass(frozen=True, slots=True)
class Added:
    """Empty scopes to add to a pool: `leaf` is the leaf they hang on, NEW_LEAF or EVENLY over all leaves, None where it does not matter.

    Fewer than `proved`, on whatever leaves, are not enough; None stands for `scopes`, which are the fewest then.
    """

    pool: int
    scopes: int
    leaf: int | None = None
    proved: int | None = None

    @property
    def least(self) -> bool:
        """Whether it is proved that fewer are not enough."""
        return self.proved is None or self.proved >= self.scopes


def repairs(instance: Instance, rules: Sequence[Rule], limits: cpsat.Limits, work: Work | None = None) -> Repairs:
    """Find the smallest repairs of a question without a plan, most useful first while the `work` lasts."""
    from planner.solve.more_room import added, freed

    asker = Asker(rules, limits, work)
    instance = fewer_shapes(instance)
    opened: list[str | int] = []
    larger = _budget(asker, instance)
    if larger is not None:
        return larger
    if asker.doubts:
        opened.append("budget")

    def settled(kind: str | int, found: object, before: int) -> None:
        if not found and asker.doubts > before:
            opened.append(kind)

    before = asker.doubts
    with asker.work.share(FREED_PART):
        free = freed(asker, instance)
    settled("free", free.places, before)
    before = asker.doubts
    with asker.work.share(SERVED_PART):
        share = _served(asker, instance)
    settled("load", share, before)
    nodes: list[Added] = []
    pools = [pool for pool in sorted(set(instance.shapes.pool.tolist())) if len(instance.pools[pool])]
    for position, pool in enumerate(pools):
        before = asker.doubts
        # What is left is shared with the pools to come.
        with asker.work.share(NODES_PART if position == len(pools) - 1 else 1.0 / (len(pools) - position)):
            one = added(asker, instance, pool)
        nodes += [one] if one is not None else []
        settled(pool, one, before)
    before = asker.doubts
    loosened: tuple[RuleRepair, ...] = ()
    if any_limit(instance) and asker.possible(loads_alone(instance)) is not False:
        loosened = tuple(rule_repairs(instance, asker.possible))
    settled("rules", loosened, before)
    return Repairs(
        served=None if share is None else share[0],
        served_proved=PARTS - 1 if share is None else share[1],
        freed=free,
        nodes=tuple(sorted(nodes, key=lambda found: (found.scopes, found.pool))),
        rules=loosened,
        open=tuple(opened),
    )


def any_limit(instance: Instance) -> bool:
    """Whether some rule of a deployment could be loosened."""
    asked = any(rule.spread is not None or rule.resilience is not None or rule.only for rule in instance.rules)
    return asked or any(limits != ReplicaLimits() for limits in instance.limits)


def _budget(asker: Asker, instance: Instance) -> Repairs | None:
    """Raise the limit on money alone, the limits on GPU types alone, or both; None where the budget is not what is in the way."""
    budget = instance.budget
    if budget == Budget() or instance.objective == "throughput":
        return None
    if budget.per_hour is not None:
        found = _least_money(asker, replace(instance, budget=replace(budget, per_hour=None)))
        if found is not None:
            return Repairs(per_hour=found[0], per_hour_proved=found[1])
    raised, proved = _raised(asker, instance)
    if raised:
        return Repairs(gpus=raised, gpus_proved=proved)
    money = _least_money(asker, replace(instance, budget=Budget())) if budget.gpus and budget.per_hour is not None else None
    if money is None:
        return None
    raised, proved = _raised(asker, replace(instance, budget=replace(budget, per_hour=money[0])))
    return Repairs(per_hour=money[0], per_hour_proved=money[1], gpus=raised, gpus_proved=proved)


def _least_money(asker: Asker, instance: Instance) -> tuple[int, int] | None:
    """Money of the cheapest plan found, and below which there is none; None without a plan."""
    found = asker.least_cost(instance)
    return None if found.objective is None else (found.objective, found.bound or 0)


def _raised(asker: Asker, instance: Instance) -> tuple[tuple[tuple[int, int], ...], bool]:
    """Fewest GPUs by which the limits on types must be raised together, as new limits by position; empty where that does not help."""
    budget = instance.budget
    if not budget.gpus:
        return (), True
    model = asker.build(replace(instance, budget=replace(budget, gpus=()), objective="cost"))
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
    result = asker.minimise(model.program, over)
    values = result.values
    if values is None:
        return (), True
    needed = [sum(count * values[variable] for variable, count in row.items()) for row in used]
    raised = tuple((position, need) for position, need in enumerate(needed) if need > budget.gpus[position].limit)
    return raised, result.closed


def _served(asker: Asker, instance: Instance) -> tuple[int, int] | None:
    """Largest share of every load found with which there is a plan, and more than which there is none [1/1000]; None where there is none, or lower loads do not help."""
    if instance.objective == "throughput":
        return None
    scaled = _share_program(asker, instance if not instance.rules else loads_alone(instance))
    high = PARTS
    if scaled is not None:
        program, parts = scaled
        result = asker.minimise(program, {parts: -1})
        if result.status is Status.INFEASIBLE:
            return None
        most = PARTS - 1 if result.bound is None else -result.bound
        if not instance.rules and result.values is not None:
            return result.values[parts], most
        high = most + 1

    def enough(share: int) -> bool | None:
        return asker.possible(replace(instance, loads=-(-instance.loads * share // PARTS)))

    if not enough(1):
        return None
    low, proved = 1, high
    # Just below what is ruled out is where the answer often is.
    middle = max(low + 1, high - 1)
    while high - low > 1:
        answer = enough(middle)
        if answer:
            low = middle
        else:
            high, proved = middle, middle if answer is False else proved
        middle = (low + high) // 2
    return low, proved - 1


def _share_program(asker: Asker, instance: Instance) -> tuple[Program, int] | None:
    """The question with every load times a variable number of parts, at least one; None where loads stand in more than plain rows."""
    if instance.rules or instance.slicing:
        return None
    program = asker.build(replace(instance, objective="cost")).program
    parts = program.add_variable(1, PARTS - 1)
    rows: list[Row] = []
    for row in program.rows:
        if row.rule != "load" or row.lower is None:
            rows.append(row)
            continue
        # q n >= ceil(L parts / 1000) and 1000 q n >= L parts say the same of whole numbers.
        scaled = tuple(PARTS * coefficient for coefficient in row.coefficients)
        if sum(c * program.upper[v] for v, c in zip(row.variables, scaled, strict=True)) + PARTS * row.lower > EXACT:
            return None
        rows.append(Row(row.rule, (*row.variables, parts), (*scaled, -row.lower), 0, None))
    program.rows = rows
    return program, parts

"""Why there is no plan, as the smallest change that would make one: money, load, GPUs to free, nodes to add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.solve import cpsat
from planner.solve.domains import PINNED
from planner.solve.instance import Budget, Instance, IntArray, PoolScopes, ReplicaLimits
from planner.solve.model import Model, Rule, build
from planner.solve.program import add_term
from planner.solve.rule_repair import RuleRepair, rule_repairs
from planner.solve.scaling import SHARE_UNITS

MOST_NODES = 4096
"""More nodes than this are not worth proposing."""

MOST_DOMAINS = 16
"""More nodes than this are not tried where replicas are counted node by node."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """What would help, each None or empty where it would not, or is not known.

    `per_hour` [1e-6 $/h] is the least budget that suffices, `gpus` the GPUs by pool that the plan needs when types are not limited.
    `share` [1e-6] is the share of every load that can be served at once. `freed` lists (pool, scope, GPUs) to free, least in total. `nodes` is
    (pool, number) of empty scopes to add to one pool, fewest first. `rules` stand in the way of a plan alone.
    """

    per_hour: int | None = None
    gpus: tuple[tuple[int, int], ...] = ()
    share: int | None = None
    freed: tuple[tuple[int, int, int], ...] = ()
    nodes: tuple[tuple[int, int], ...] = ()
    rules: tuple[RuleRepair, ...] = ()


class _Asker:
    """Small solves of changed questions, within a small effort each."""

    def __init__(self, rules: Sequence[Rule], limits: cpsat.Limits) -> None:
        self.rules, self.limits = rules, limits

    def least(self, instance: Instance, objective: str) -> tuple[Model, tuple[int, ...]] | None:
        """Best plan of a question by money, GPUs or share; None when none is found."""
        model = build(replace(instance, objective=objective), self.rules)
        terms = {"cost": model.cost, "gpus": model.gpus()}.get(objective, {} if model.share is None else {model.share: -1})
        result = cpsat.minimise(model.program, terms, self.limits)
        return None if result.values is None else (model, result.values)

    def possible(self, instance: Instance) -> bool:
        """Whether any plan is found."""
        model = build(replace(instance, objective="cost"), self.rules)
        return cpsat.minimise(model.program, {}, self.limits).values is not None


def repairs(instance: Instance, rules: Sequence[Rule], limits: cpsat.Limits) -> Repairs:
    """Find the smallest repairs of a question without a plan."""
    asker = _Asker(rules, limits)
    unlimited = replace(instance, budget=Budget())
    if instance.budget != Budget():
        money = replace(instance, budget=replace(instance.budget, per_hour=None))
        found = asker.least(money, "cost") if instance.budget.per_hour is not None else None
        if found is not None:
            model, values = found
            return Repairs(per_hour=sum(price * values[variable] for variable, price in model.cost.items()))
        found = asker.least(unlimited, "gpus")
        if found is not None:
            model, values = found
            used = dict.fromkeys(range(len(instance.pools)), 0)
            for shape, variable in enumerate(model.count):
                used[int(instance.shapes.pool[shape])] += int(instance.shapes.gpus[shape]) * values[variable]
            return Repairs(gpus=tuple((pool, gpus) for pool, gpus in used.items() if gpus))
    return Repairs(
        share=_share(asker, instance),
        freed=tuple(_freed(asker, unlimited)),
        nodes=tuple(sorted(_nodes(asker, unlimited), key=lambda pair: (pair[1], pair[0]))),
        rules=tuple(rule_repairs(instance, asker.possible)),
    )


def _share(asker: _Asker, instance: Instance) -> int | None:
    found = asker.least(
        replace(instance, limits=tuple(ReplicaLimits(0, limits.maximum, limits.one_shape) for limits in instance.limits)), "throughput"
    )
    if found is None or found[0].share is None:
        return None
    share = found[1][found[0].share]
    # Where all of it can be served, the load is not what is in the way.
    return None if share >= SHARE_UNITS else share


def _freed(asker: _Asker, instance: Instance) -> Iterator[tuple[int, int, int]]:
    """Fewest GPUs to free, and in which scopes; pools with parts or billed by node are taken as they are."""
    pools = tuple(
        pool
        if pool.parts or pool.node_price is not None or _split_scopes(pool)
        else replace(pool, free=pool.capacity, untouched=pool.free, nodes=(), _slots={})
        for pool in instance.pools
    )
    model = build(replace(instance, pools=pools, objective="cost"), asker.rules)
    freed: dict[int, int] = {}
    for pool in model.pools:
        if pool.layout.scopes.untouched is not None:
            for key, variable in pool.opened.items():
                add_term(freed, variable, pool.layout.cells[key.cell].classes[key.group].openings[key.opening].nodes)
    if not freed:
        return
    result = cpsat.minimise(model.program, freed, asker.limits)
    if result.values is None:
        return
    for pool in model.pools:
        if pool.layout.scopes.untouched is None:
            continue
        taken: dict[tuple[int, int], int] = {}
        for key, variable in pool.opened.items():
            group = pool.layout.cells[key.cell].classes[key.group]
            for _ in range(result.values[variable]):
                start = taken.get((key.cell, key.group), 0)
                taken[key.cell, key.group] = start + 1
                if group.openings[key.opening].nodes:
                    yield pool.layout.pool, group.members[start], group.openings[key.opening].nodes


def _split_scopes(pool: PoolScopes) -> bool:
    """Whether some scope lies in several failure domains that replicas are counted by."""
    return any(len(set(nodes)) > 1 for scopes in pool.domains.values() for nodes in scopes)


def _nodes(asker: _Asker, instance: Instance) -> Iterator[tuple[int, int]]:
    """Fewest empty scopes to add to each pool alone, by doubling and bisection."""
    for number in sorted(set(instance.shapes.pool.tolist())):
        if len(instance.pools[number]) == 0 or instance.pools[number].parts:
            continue

        def enough(more: int, pool: int = number) -> bool:
            grown = (*instance.pools[:pool], widened(instance.pools[pool], more), *instance.pools[pool + 1 :])
            return asker.possible(replace(instance, pools=grown))

        most = MOST_DOMAINS if instance.kinds_of_pool(number) else MOST_NODES
        high = 1
        while high <= most and not enough(high):
            high *= 4
        if high > most:
            continue
        low = high // 4
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        yield number, high


def widened(pool: PoolScopes, more: int) -> PoolScopes:
    """Give the pool with `more` empty scopes of its largest size, all under the leaf of its first, in other failure domains of their own."""

    def longer(column: IntArray, value: int) -> IntArray:
        return np.concatenate([column, np.full(more, value, dtype=np.int64)])

    size = int(pool.capacity.max())
    per_node = max((count for nodes in pool.nodes for count in nodes), default=size)
    return replace(
        pool,
        free=longer(pool.free, size),
        capacity=longer(pool.capacity, size),
        leaf=longer(pool.leaf, int(pool.leaf[0])),
        spine=longer(pool.spine, int(pool.spine[0])),
        fabric=longer(pool.fabric, int(pool.fabric[0])),
        order=np.concatenate([pool.order, np.arange(len(pool), len(pool) + more, dtype=np.int64)]),
        nodes=(*pool.nodes, *((per_node,) * (size // per_node) for _ in range(more))) if pool.nodes else (),
        domains={
            kind: (*scopes, *(_new_domains(kind, scopes, number, size // per_node) for number in range(more)))
            for kind, scopes in pool.domains.items()
        },
        _slots={},
    )


NEW_DOMAIN = 1 << 40
"""Above the number of any failure domain that is there."""


def _new_domains(kind: str, scopes: tuple[tuple[int, ...], ...], number: int, nodes: int) -> tuple[int, ...]:
    if kind == "leaf":
        return (scopes[0][0],) * nodes
    if kind.startswith(PINNED):
        return (0,) * nodes
    return tuple(NEW_DOMAIN + number * nodes + node for node in range(nodes))

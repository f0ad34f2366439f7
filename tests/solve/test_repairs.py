"""Every repair of a random fleet without a plan makes a plan, and no smaller repair of its kind does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.instance import Budget, Instance, PoolScopes, ReplicaLimits, Resilience, Spread
from planner.solve.more_room import widened
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.repair import EVENLY, NEW_LEAF, PARTS, Repairs, repairs
from planner.solve.rule_repair import RuleRepair
from planner.solve.rules import RULES
from tests.solve.combined_fleets import combined_instance
from tests.solve.fleets import random_instance
from tests.solve.located_fleets import located_instance

EFFORT = cpsat.Limits(1.0)
SMALL = 3
"""Most GPUs whose every way of being freed is tried."""


def possible(instance: Instance) -> bool:
    """Whether there is a plan: by the whole search, not by the questions of the repairs."""
    status = decide(replace(instance, objective="cost"), SolveOptions(), RULES).status
    assert status is not Status.UNKNOWN
    return status is not Status.INFEASIBLE


def impossible(first: int) -> Iterator[tuple[int, Instance]]:
    """Questions without a plan, of all generators in turn: harder ones of fleets with every rule in them now and then."""
    seed = first
    while True:
        instance = (combined_instance(seed)[0], located_instance(seed), random_instance(seed, "cost"))[seed % 3]
        instance = replace(instance, loads=instance.loads * (1 + seed % 3), objective="cost")
        decision = decide(instance, SolveOptions(), RULES)
        if decision.stages and decision.stages[0].value and seed % 4 == 0:
            instance = replace(instance, budget=replace(instance.budget, per_hour=decision.stages[0].value - 1))
            decision = decide(instance, SolveOptions(), RULES)
        if decision.status is Status.INFEASIBLE:
            yield seed, instance
        seed += 1


def with_pool(instance: Instance, number: int, pool: PoolScopes) -> Instance:
    return replace(instance, pools=(*instance.pools[:number], pool, *instance.pools[number + 1 :]))


def freeing(instance: Instance, gpus: tuple[tuple[int, int, int], ...]) -> Instance:
    for number, scope, count in gpus:
        pool = instance.pools[number]
        free = pool.free.copy()
        free[scope] += count
        nodes = tuple((int(free[d]),) if len(own) < 2 else own for d, own in enumerate(pool.nodes)) if pool.nodes else ()
        instance = with_pool(instance, number, replace(pool, free=free, nodes=nodes, _slots={}))
    return instance


def ways_to_free(instance: Instance, total: int) -> Iterator[tuple[tuple[int, int, int], ...]]:
    """Every way to free `total` GPUs where freeing is asked about."""
    scopes = [
        (number, scope, int(pool.capacity[scope] - pool.free[scope]))
        for number, pool in enumerate(instance.pools)
        if not pool.parts and not any(len(set(nodes)) > 1 for kind in pool.domains.values() for nodes in kind)
        for scope in range(len(pool))
    ]
    for split in product(*(range(min(taken, total) + 1) for _, _, taken in scopes)):
        if sum(split) == total:
            yield tuple((number, scope, count) for (number, scope, _), count in zip(scopes, split, strict=True) if count)


def loosened(instance: Instance, repair: RuleRepair, fewer: int = 0) -> Instance:
    """The question with one rule changed as a repair says, or by `fewer` less."""
    deployment, rule, enough = repair.deployment, repair.rule, repair.enough
    rules, limits = list(instance.rules), list(instance.limits)
    if isinstance(rule, ReplicaLimits):
        changed = {
            "min": replace(rule, minimum=(enough or 0) + fewer),
            "max": replace(rule, maximum=(enough or 0) - fewer),
            "one_shape": replace(rule, one_shape=False),
        }
        limits[deployment] = changed[repair.part]
        return replace(instance, limits=tuple(limits))
    if isinstance(rule, Spread):
        rules[deployment] = replace(rules[deployment], spread=None if enough is None else replace(rule, most=enough - fewer))
    elif isinstance(rule, Resilience):
        kept = None if enough is None else replace(rule, keep=Fraction(enough + fewer, 100))
        rules[deployment] = replace(rules[deployment], resilience=kept)
    else:
        rules[deployment] = replace(rules[deployment], only="")
    return replace(instance, rules=tuple(rules))


def assert_budget(instance: Instance, found: Repairs) -> None:
    """Limits on types first, then money: what they are raised to is enough, and a little less is not."""
    budget = instance.budget
    gpus = list(budget.gpus)
    for position, needed in found.gpus:
        gpus[position] = replace(gpus[position], limit=needed)
    enough = Budget(budget.per_hour if found.per_hour is None else found.per_hour, tuple(gpus))
    assert possible(replace(instance, budget=enough))
    if found.per_hour is not None:
        assert not possible(
            replace(instance, budget=replace(enough, per_hour=found.per_hour - 1, gpus=enough.gpus if not found.gpus else ()))
        )
    raised = [(position, needed - budget.gpus[position].limit) for position, needed in found.gpus]
    total = sum(more for _, more in raised)
    if raised and found.per_hour is None:
        for split in product(*(range(total) for _ in budget.gpus)):
            if sum(split) == total - 1:
                less = tuple(replace(limited, limit=limited.limit + more) for limited, more in zip(budget.gpus, split, strict=True))
                assert not possible(replace(instance, budget=replace(budget, gpus=less)))


def assert_repairs(seed: int, instance: Instance) -> Counter[str]:
    found = repairs(instance, RULES, EFFORT)
    kinds: Counter[str] = Counter()
    if found.per_hour is not None or found.gpus:
        assert_budget(instance, found)
        kinds.update(["money"] * (found.per_hour is not None) + ["types"] * bool(found.gpus))
        return kinds
    if found.served is not None:
        kinds["load"] += 1
        assert possible(replace(instance, loads=-(-instance.loads * found.served // PARTS)))
        assert found.served == PARTS - 1 or not possible(replace(instance, loads=-(-instance.loads * (found.served + 1) // PARTS)))
    if found.freed.places:
        kinds["freed"] += 1
        assert possible(freeing(instance, found.freed.places))
        total = found.freed.total
        assert found.freed.proved == total
        if total <= SMALL:
            assert not any(possible(freeing(instance, way)) for way in ways_to_free(instance, total - 1))
    for more in found.nodes:
        kinds["nodes"] += 1
        pool = instance.pools[more.pool]
        assert possible(with_pool(instance, more.pool, widened(pool, more.scopes, more.leaf)))
        for leaf in (more.leaf,) if more.leaf is None else (*sorted(set(pool.leaf.tolist())), NEW_LEAF, EVENLY):
            assert not possible(with_pool(instance, more.pool, widened(pool, more.scopes - 1, leaf)))
    for repair in found.rules:
        kinds[type(repair.rule).__name__] += 1
        assert possible(loosened(instance, repair))
        if repair.enough is not None and (not isinstance(repair.rule, ReplicaLimits) or repair.part == "max" or repair.enough):
            assert not possible(loosened(instance, repair, 1))
    kinds["none"] += not kinds
    return kinds


def assert_many(first: int, count: int) -> Counter[str]:
    total: Counter[str] = Counter()
    for (seed, instance), _ in zip(impossible(first), range(count), strict=False):
        total += assert_repairs(seed, instance)
    return total


def test_a_sample_of_repairs():
    kinds = assert_many(10, 8)
    assert {"money", "load", "freed", "nodes"} <= set(kinds)


@pytest.mark.thorough
def test_a_hundred_repairs():
    kinds = assert_many(2000, 100)
    assert {"money", "types", "load", "freed", "nodes", "ReplicaLimits", "Spread", "Resilience", "NoneType"} <= set(kinds)
    # Few questions are beyond any single change.
    assert kinds["none"] <= 25

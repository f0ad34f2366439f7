"""Which questions are answered by replicas first and places after, and what is asked of the replicas alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from planner.solve.instance import Instance
from planner.solve.surviving import DIRECT, places_counted


def far_apart(instance: Instance) -> bool:
    """Whether replicas that keep apart have too many places to count; losses to survive are left to the program that counts them."""
    rules = instance.rules
    if not any(rule.apart for rule in rules):
        return False
    if any(rule.resilience is not None and rule.resilience.kind != "gpu" for rule in rules):
        return False
    return places_counted(instance) > DIRECT


def without_spread(instance: Instance, bounded: Collection[int]) -> Instance:
    """Give the question whose program counts no places for spreads; of the `bounded` deployments it minds the number of replicas."""
    rules = (
        replace(rule, spread=None, placed_apart=rule.spread if number in bounded else None) for number, rule in enumerate(instance.rules)
    )
    return replace(instance, rules=tuple(rules))


def bounded_at_once(instance: Instance) -> frozenset[int]:
    """Deployments whose number of replicas is limited from the start: those on pools whose scopes reach into several domains, or that are paid for by node, or that run already."""
    columns, found = instance.shapes, set()
    for deployment, rule in enumerate(instance.rules):
        spread = rule.apart
        if spread is not None:
            pools = [instance.pools[pool] for pool in np.unique(columns.pool[instance.of_deployment(deployment)]).tolist()]
            if bool(instance.seats) or any(pool.node_price is not None or pool.label(spread.kind) is None for pool in pools):
                found.add(deployment)
    return frozenset(found)

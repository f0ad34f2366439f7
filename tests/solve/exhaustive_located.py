"""Brute force for rules about places: every way to put every replica on nodes, judged by the replicas each failure domain touches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil

from planner.solve.instance import Container, Instance
from tests.solve.exhaustive import kept_free
from tests.solve.exhaustive_buckets import least_unserved

Nodes = tuple[tuple[int, ...], ...]
"""Free GPUs by scope and node."""

Touch = frozenset[tuple[str, int]]
"""Failure domains (kind, number) that a replica has GPUs in."""


def start_of(instance: Instance, pool: int) -> Nodes:
    scopes = instance.pools[pool]
    return tuple(scopes.nodes[d] if scopes.nodes and scopes.nodes[d] else (int(scopes.free[d]),) for d in range(len(scopes)))


def labels_of(instance: Instance, pool: int, scope: int, node: int) -> Touch:
    domains = instance.pools[pool].domains
    return frozenset((kind, numbers[scope][min(node, len(numbers[scope]) - 1)]) for kind, numbers in domains.items())


def take(nodes: tuple[int, ...], size: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every way to take a group from the nodes of a scope: what is left, and the nodes used."""
    for split in product(*(range(min(free, size) + 1) for free in nodes)):
        if sum(split) == size:
            yield tuple(free - used for free, used in zip(nodes, split, strict=True)), tuple(n for n, used in enumerate(split) if used)


def placements(instance: Instance, pool: int, counts: tuple[int, ...]) -> set[tuple[tuple[tuple[int, Touch], ...], int]]:
    """Every (shape and touched domains of each replica, nodes opened) that some packing of the pool gives."""
    columns, scopes = instance.shapes, instance.pools[pool]
    replicas = [s for s in range(len(columns)) if columns.pool[s] == pool for _ in range(counts[s])]
    groups = [(number, shape) for number, shape in enumerate(replicas) for _ in range(int(columns.groups[shape]))]
    start = start_of(instance, pool)
    states: set[tuple[Nodes, tuple[int | None, ...], tuple[Touch, ...]]] = {
        (start, (None,) * len(replicas), (frozenset[tuple[str, int]](),) * len(replicas))
    }
    for number, shape in groups:
        following = set()
        for state, homes, touched in states:
            for scope, nodes in enumerate(state):
                place = {
                    Container.LEAF: int(scopes.leaf[scope]),
                    Container.SPINE: int(scopes.spine[scope]),
                    Container.FABRIC: int(scopes.fabric[scope]),
                    Container.ANYWHERE: 0,
                }[Container(int(columns.container[shape]))]
                if homes[number] not in {None, place}:
                    continue
                for left, used in take(nodes, int(columns.size[shape])):
                    reached = touched[number].union(*(labels_of(instance, pool, scope, node) for node in used))
                    following.add(
                        (
                            (*state[:scope], left, *state[scope + 1 :]),
                            (*homes[:number], place, *homes[number + 1 :]),
                            (*touched[:number], reached, *touched[number + 1 :]),
                        )
                    )
        states = following
    return {
        (
            tuple(sorted(zip(replicas, touched, strict=True), key=lambda pair: (pair[0], sorted(pair[1])))),
            sum(a != b for before, after in zip(start, state, strict=True) for a, b in zip(before, after, strict=True)),
        )
        for state, _, touched in states
    }


def kept(instance: Instance, replicas: tuple[tuple[int, Touch], ...]) -> tuple[int, ...] | None:
    """Load of every deployment that goes unserved when spread and resilience hold for replicas and what they touch; None when they cannot."""
    columns = instance.shapes
    unserved = []
    for deployment in range(instance.deployments):
        rules = instance.rules_of(deployment)
        mine = [(shape, touched) for shape, touched in replicas if columns.deployment[shape] == deployment]
        # GPUs kept free lie where the deployment may run, and are no replicas to the other rules.
        if rules.only and any((rules.only, 0) in touched for _, touched in mine):
            return None
        own = [(int(columns.capacity[shape]), touched) for shape, touched in mine if not instance.spare[shape]]
        if rules.spread is not None:
            kind, most = rules.spread.kind, rules.spread.most
            if any(sum(label in touched for _, touched in own) > most for label in {x for _, t in own for x in t if x[0] == kind}):
                return None
        if instance.slicing_of(deployment) is not None:
            running = [shape for shape, _ in mine]
            missing = least_unserved(instance, deployment, tuple(map(running.count, range(len(columns)))))
            if missing is None:
                return None
            unserved.append(missing)
            continue
        load, total = int(instance.loads[deployment]), sum(capacity for capacity, _ in own)
        missing = max(0, load - total)
        if rules.resilience is not None:
            kind, keep = rules.resilience.kind, rules.resilience.keep
            if kind == "gpu":
                losses = [capacity for capacity, _ in own]
            else:
                losses = [sum(q for q, touched in own if label in touched) for label in {x for _, t in own for x in t if x[0] == kind}]
            # Of the load that is promised the stated share must be left.
            missing = max(missing, ceil(load - (total - max(losses, default=0)) / keep))
        if missing > load * rules.may_go_unserved:
            return None
        unserved.append(missing)
    return tuple(unserved)


def value_of(instance: Instance, unserved: tuple[int, ...], money: int) -> tuple[int, ...]:
    """Unserved load by importance, equal shares weighing alike, then money."""
    levels: dict[int, int] = {}
    for deployment, missing in enumerate(unserved):
        rules = instance.rules_of(deployment)
        if rules.may_go_unserved:
            weight = 2**40 // int(instance.loads[deployment])
            levels[rules.priority] = levels.get(rules.priority, 0) + missing * weight
    return (*(levels[priority] for priority in sorted(levels, reverse=True)), money)


def best_located(instance: Instance) -> tuple[int, ...] | None:
    """Best value of a plan that keeps load, replica limits and the rules about places; None when there is none."""
    columns = instance.shapes
    bounds = [
        sum(int(free) // int(columns.size[s]) for free in instance.pools[int(columns.pool[s])].free) // int(columns.groups[s])
        for s in range(len(columns))
    ]
    # More sets of free GPUs than spares are asked for only cost more.
    bounds = [
        min(bound, instance.rules_of(int(columns.deployment[s])).spares) if instance.spare[s] else bound for s, bound in enumerate(bounds)
    ]
    found: tuple[int, ...] | None = None
    elastic = any(instance.rules_of(deployment).may_go_unserved for deployment in range(instance.deployments))
    known: dict[tuple[int, tuple[int, ...]], set[tuple[tuple[tuple[int, Touch], ...], int]]] = {}
    for counts in product(*(range(bound + 1) for bound in bounds)):
        if not loads_kept(instance, counts) or not gpus_kept(instance, counts):
            continue
        gpus = sum(int(columns.gpus[s]) * count for s, count in enumerate(counts))
        by_gpu = sum(
            int(columns.price[s]) * counts[s] for s in range(len(columns)) if instance.pools[int(columns.pool[s])].node_price is None
        )
        if found is not None and not elastic and (gpus if instance.objective == "gpus" else by_gpu) >= found[-1]:
            continue
        if instance.budget.per_hour is not None and by_gpu > instance.budget.per_hour:
            continue
        options = []
        for pool in range(len(instance.pools)):
            own = tuple(count if columns.pool[s] == pool else 0 for s, count in enumerate(counts))
            if (pool, own) not in known:
                used = sum(int(columns.gpus[s]) * count for s, count in enumerate(own))
                known[pool, own] = placements(instance, pool, own) if used <= int(instance.pools[pool].free.sum()) else set()
            options.append(known[pool, own])
        for choice in product(*options):
            money = by_gpu + sum(opened * (instance.pools[pool].node_price or 0) for pool, (_, opened) in enumerate(choice))
            if instance.budget.per_hour is not None and money > instance.budget.per_hour:
                continue
            value = gpus if instance.objective == "gpus" else money
            unserved = kept(instance, tuple(replica for replicas, _ in choice for replica in replicas))
            if unserved is not None and (found is None or value_of(instance, unserved, value) < found):
                found = value_of(instance, unserved, value)
    return found


def gpus_kept(instance: Instance, counts: tuple[int, ...]) -> bool:
    """Whether counts keep the limits on GPUs of a type."""
    columns = instance.shapes
    return all(
        sum(int(columns.gpus[s]) * count for s, count in enumerate(counts) if int(columns.pool[s]) in limited.pools) <= limited.limit
        for limited in instance.budget.gpus
    )


def loads_kept(instance: Instance, counts: tuple[int, ...]) -> bool:
    columns = instance.shapes
    for deployment in range(instance.deployments):
        own = [s for s in range(len(columns)) if columns.deployment[s] == deployment and not instance.spare[s]]
        if any(kept_free(instance, counts, s) < min(instance.rules_of(deployment).spares, counts[s]) for s in own):
            return False
        limits, number = instance.limits[deployment], sum(counts[s] for s in own)
        if number < limits.minimum or (limits.maximum is not None and number > limits.maximum):
            return False
        if limits.one_shape and sum(1 for s in own if counts[s]) > 1:
            return False
        if instance.slicing_of(deployment) is not None:
            if least_unserved(instance, deployment, counts) is None:
                return False
            continue
        least = int(instance.loads[deployment]) * (1 - instance.rules_of(deployment).may_go_unserved)
        if sum(int(columns.capacity[s]) * counts[s] for s in own) < least:
            return False
    return True

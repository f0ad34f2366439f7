"""Brute force on tiny fleets: every count vector, every packing. Shares nothing with the formulation but the instance."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product

from planner.solve.instance import Container, Instance, PoolScopes
from tests.solve.exhaustive_buckets import greatest_share, serves

Scope = tuple[int, ...]


def blocks_of(pool: PoolScopes, scope: int) -> Scope:
    """Free GPUs of a scope by part, or as one block."""
    if pool.parts:
        return pool.parts[scope]
    return (int(pool.free[scope]),)


def take(blocks: Scope, size: int, within_part: bool) -> Iterator[Scope]:
    """Every way to take one group out of a scope."""
    if within_part:
        for position, free in enumerate(blocks):
            if free >= size:
                yield tuple(sorted((*blocks[:position], free - size, *blocks[position + 1 :])))
        return
    if sum(blocks) < size:
        return
    found = set()
    for split in product(*(range(free + 1) for free in blocks)):
        if sum(split) == size:
            found.add(tuple(sorted(free - used for free, used in zip(blocks, split, strict=True))))
    yield from sorted(found)


def packs(scopes: tuple[tuple[int, int, int, Scope], ...], replicas: tuple[tuple[int, int, int, bool], ...]) -> bool:
    """Whether replicas (size, groups, container, within_part) fit on scopes (leaf, spine, fabric, blocks)."""
    groups = []
    for number, (size, count, container, within_part) in enumerate(replicas):
        groups += [(size, number, container, within_part)] * count

    @cache
    def place(index: int, state: tuple[Scope, ...], homes: tuple[int | None, ...]) -> bool:
        if index == len(groups):
            return True
        size, number, container, within_part = groups[index]
        tried = set()
        for position, blocks in enumerate(state):
            leaf, spine, fabric, _ = scopes[position]
            home = {Container.LEAF: leaf, Container.SPINE: spine, Container.FABRIC: fabric, Container.ANYWHERE: 0}[Container(container)]
            if homes[number] is not None and homes[number] != home:
                continue
            key = (leaf, spine, fabric, blocks)
            if key in tried:
                continue
            tried.add(key)
            for left in take(blocks, size, within_part):
                after = (*state[:position], left, *state[position + 1 :])
                if place(index + 1, after, (*homes[:number], home, *homes[number + 1 :])):
                    return True
        return False

    return place(0, tuple(scope[3] for scope in scopes), (None,) * len(replicas))


def nodes_of(pool: PoolScopes, scope: int) -> tuple[int, ...]:
    """Free GPUs of the scope's nodes; a scope without several nodes is one."""
    if pool.nodes and pool.nodes[scope]:
        return pool.nodes[scope]
    return (int(pool.free[scope]),)


def pool_cost(instance: Instance, pool: int, counts: tuple[int, ...]) -> int | None:
    """Least money of one pool for given counts: by GPU, or the fewest nodes whose GPUs suffice; None when nothing packs."""
    columns, scopes = instance.shapes, instance.pools[pool]
    own = [shape for shape in range(len(columns)) if columns.pool[shape] == pool]
    replicas = tuple(
        (int(columns.size[s]), int(columns.groups[s]), int(columns.container[s]), bool(columns.within_part[s]))
        for s in sorted(own, key=lambda s: (-int(columns.groups[s]), -int(columns.size[s]), s))
        for _ in range(counts[s])
    )

    def rows(opened: dict[int, list[int]] | None) -> tuple[tuple[int, int, int, Scope], ...]:
        result = []
        for scope in range(len(scopes)):
            blocks = blocks_of(scopes, scope)
            if opened is not None:
                chosen = opened.get(scope, [])
                if not chosen:
                    continue
                if not scopes.parts:
                    blocks = (sum(nodes_of(scopes, scope)[node] for node in chosen),)
            result.append((int(scopes.leaf[scope]), int(scopes.spine[scope]), int(scopes.fabric[scope]), tuple(sorted(blocks))))
        return tuple(result)

    if scopes.node_price is None:
        if not packs(rows(None), replicas):
            return None
        return sum(int(columns.price[s]) * counts[s] for s in own)
    if not replicas:
        return 0
    nodes = [(scope, node) for scope in range(len(scopes)) for node in range(len(nodes_of(scopes, scope)))]
    for number in range(1, len(nodes) + 1):
        for chosen in combinations(nodes, number):
            opened: dict[int, list[int]] = {}
            for scope, node in chosen:
                opened.setdefault(scope, []).append(node)
            if packs(rows(opened), replicas):
                return number * scopes.node_price
    return None


def best(instance: Instance) -> tuple[int, ...] | None:
    """Optimal value of the objective (latency: worst TPOT, then TTFT), or None when no plan exists."""
    columns = instance.shapes
    bounds = []
    for s in range(len(columns)):
        pool = instance.pools[int(columns.pool[s])]
        bound = sum(int(free) // int(columns.size[s]) for free in pool.free) // int(columns.groups[s])
        if instance.spare[s]:
            bounds.append(min(bound, instance.rules_of(int(columns.deployment[s])).spares))
            continue
        if instance.objective != "throughput" and instance.slicing_of(int(columns.deployment[s])) is None:
            deployment = int(columns.deployment[s])
            needed = -(-int(instance.loads[deployment]) // int(columns.capacity[s]))
            bound = min(bound, max(needed, instance.limits[deployment].minimum))
        bounds.append(bound)
    found: tuple[int, ...] | None = None
    costs: dict[tuple[int, tuple[int, ...]], int | None] = {}
    for counts in product(*(range(bound + 1) for bound in bounds)):
        value = _value(instance, counts)
        if value is None or (found is not None and instance.objective != "cost" and value >= found):
            continue
        money = 0
        for pool in range(len(instance.pools)):
            own = tuple(count if columns.pool[s] == pool else 0 for s, count in enumerate(counts))
            if (pool, own) not in costs:
                costs[pool, own] = pool_cost(instance, pool, own)
            part = costs[pool, own]
            if part is None:
                break
            money += part
        else:
            if instance.budget.per_hour is not None and money > instance.budget.per_hour:
                continue
            value = (money,) if instance.objective == "cost" else value
            if found is None or value < found:
                found = value
    return found


def _value(instance: Instance, counts: tuple[int, ...]) -> tuple[int, ...] | None:
    """Objective of counts that keep load and replica limits, whatever they cost; None when they break one."""
    columns = instance.shapes
    gpus = columns.gpus
    shares = []
    for deployment in range(instance.deployments):
        own = [s for s in range(len(columns)) if columns.deployment[s] == deployment and not instance.spare[s]]
        if not all(kept_free(instance, counts, s) >= min(instance.rules_of(deployment).spares, counts[s]) for s in own):
            return None
        limits = instance.limits[deployment]
        replicas = sum(counts[s] for s in own)
        if replicas < limits.minimum or (limits.maximum is not None and replicas > limits.maximum):
            return None
        if limits.one_shape and sum(1 for s in own if counts[s]) > 1:
            return None
        if instance.slicing_of(deployment) is not None:
            if instance.objective == "throughput":
                if replicas == 0:
                    return None
                shares.append(greatest_share(instance, deployment, counts))
            elif not serves(instance, deployment, counts):
                return None
            continue
        if instance.objective == "throughput":
            if replicas == 0:
                return None
            shares.append(sum(int(columns.share[s]) * counts[s] for s in own))
        elif sum(int(columns.capacity[s]) * counts[s] for s in own) < instance.loads[deployment]:
            return None
    used = [s for s in range(len(columns)) if counts[s] and (instance.objective == "gpus" or not instance.spare[s])]
    if instance.objective == "gpus":
        return (sum(int(gpus[s]) * counts[s] for s in used),)
    if instance.objective == "latency":
        return (max(int(columns.tpot[s]) for s in used), max(int(columns.ttft[s]) for s in used))
    if instance.objective == "throughput":
        return (-min(shares),)
    return (0,)


def keeps_limits(instance: Instance, counts: tuple[int, ...]) -> bool:
    """Whether counts keep load, replica limits and spares."""
    return _value(instance, counts) is not None


def kept_free(instance: Instance, counts: tuple[int, ...], shape: int) -> int:
    """Sets of GPUs that are kept free for a shape."""
    spare_of = instance.shapes.spare_of
    if spare_of is None:
        return 0
    return sum(count for s, count in enumerate(counts) if spare_of[s] == instance.source[shape])

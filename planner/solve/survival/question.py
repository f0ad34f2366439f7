"""The room by failure domain, and what every deployment asks of it, in columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from planner.solve.counts import rest_of
from planner.solve.instance import NO_RULES, BoolArray, Container, Instance, IntArray, PoolScopes
from planner.solve.layout import container_ids

FAR = 10**9
"""Domains of a deployment that loses one GPU, or nothing: every replica has one of its own."""


@dataclass(frozen=True)
class PoolBins:
    """Scopes of one pool by what they share.

    A bin holds the scopes of one leaf, spine and fabric that fail together. `of_scope` [D] is the bin of every scope, `slots` [bins, sizes] how many groups of each
    of the `sizes` it holds, `containers` and `domains` the container and the failure domain of every bin by kind [bins].
    """

    pool: int
    scopes: PoolScopes
    sizes: tuple[int, ...]
    of_scope: IntArray
    slots: IntArray
    containers: dict[Container, IntArray]
    domains: dict[str, IntArray]

    def __len__(self) -> int:
        return len(self.slots)


@dataclass(frozen=True)
class Question:
    """An instance whose deployments survive losses, limit and spread their replicas and use the nodes they may.

    `weights` [n] is what the objective counts. `bins` maps a pool to its bins. Of every deployment, `kinds` names the domain that it may lose (empty: nothing), `rest` is what
    must be left. `held` [n] lists how many replicas of a shape may touch each domain that can hold something of it (empty where every replica has one of its own), and
    `limits` [n] counts the replicas that a plan may need. `local` [n] tells the shapes whose replicas touch one domain wherever they stand.
    """

    instance: Instance
    weights: IntArray
    bins: dict[int, PoolBins]
    kinds: tuple[str, ...]
    rest: tuple[int, ...]
    held: tuple[tuple[int, ...], ...]
    limits: IntArray
    local: tuple[bool, ...]

    def slots(self, shape: int) -> IntArray:
        """Groups of a shape that every bin of its pool holds, none where it may not stand [bins]."""
        columns = self.instance.shapes
        found = self.bins[int(columns.pool[shape])]
        held: IntArray = found.slots[:, found.sizes.index(int(columns.size[shape]))] * self.allowed(shape)
        return held

    def allowed(self, shape: int) -> BoolArray:
        """Bins of a shape's pool that its deployment may use [bins]."""
        return _allowed(self.instance, self.bins[int(self.instance.shapes.pool[shape])], shape)


def covered(instance: Instance) -> bool:
    """Whether counts first and places after answer an instance: cost or GPUs, losses to survive, and no rules beside them that speak of more than nodes."""
    if instance.objective not in {"cost", "gpus"} or not any(rules.resilience and rules.kinds for rules in instance.rules):
        return False
    if instance.seats or instance.move_price is not None:
        return False
    if any(rules.may_go_unserved for rules in instance.rules):
        return False
    if bool((instance.shapes.within_part & (instance.shapes.size > 1)).any()):
        return False
    if bool((instance.shapes.capacity <= 0).any()) or len(np.unique(instance.shapes.deployment)) < instance.deployments:
        return False
    for number, pool in enumerate(instance.pools):
        if pool.node_price is not None or pool.untouched is not None:
            return False
        kinds = instance.kinds_of_pool(number)
        if any(len(set(nodes)) != 1 for kind in kinds for nodes in pool.domains[kind]):
            return False
    return True


def ask(instance: Instance) -> Question:
    """Read an instance that is `covered`."""
    columns = instance.shapes
    bins = {pool: _bins(instance, pool) for pool in range(len(instance.pools)) if len(instance.of_pool(pool))}
    rules = [instance.rules_of(deployment) for deployment in range(instance.deployments)]
    rest = tuple(
        0 if rule.resilience is None else rest_of(int(load), rule.resilience.keep.numerator, rule.resilience.keep.denominator)
        for rule, load in zip(rules, instance.loads, strict=True)
    )
    kinds = tuple("" if rule is NO_RULES or rule.resilience is None else rule.resilience.kind for rule in rules)
    weights = columns.price if instance.objective == "cost" else columns.gpus
    reached = []
    for shape in range(len(columns)):
        deployment = int(columns.deployment[shape])
        reached.append(_reach(instance, bins[int(columns.pool[shape])], shape, kinds[deployment], rest[deployment]))
    limits: IntArray = np.array([limit for _, limit, _ in reached], dtype=np.int64)
    return Question(
        instance, weights, bins, kinds, rest, tuple(held for held, _, _ in reached), limits, tuple(local for _, _, local in reached)
    )


def _bins(instance: Instance, pool: int) -> PoolBins:
    scopes, shapes = instance.pools[pool], instance.of_pool(pool)
    sizes = tuple(np.unique(instance.shapes.size[shapes]).tolist())
    kinds = instance.kinds_of_pool(pool)
    labels = {kind: np.fromiter((nodes[0] for nodes in scopes.domains[kind]), dtype=np.int64, count=len(scopes)) for kind in kinds}
    columns = [scopes.fabric, scopes.spine, scopes.leaf, *labels.values()]
    _, first, of_scope = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
    of_scope = of_scope.reshape(-1).astype(np.int64)
    slots = np.zeros((len(first), len(sizes)), dtype=np.int64)
    for position, size in enumerate(sizes):
        np.add.at(slots[:, position], of_scope, scopes.free // size)
    containers = {container: container_ids(scopes, container)[first] for container in Container}
    return PoolBins(pool, scopes, sizes, of_scope, slots, containers, {kind: own[first] for kind, own in labels.items()})


def summed(ids: IntArray, values: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct ids, and the sum of the values of each."""
    distinct, where = np.unique(ids, return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, where.reshape(-1), values)
    return distinct, sums


def _reach(instance: Instance, bins: PoolBins, shape: int, kind: str, rest: int) -> tuple[tuple[int, ...], int, bool]:
    """Replicas of a shape that may touch each domain, replicas that a plan may need, and whether each touches one domain only."""
    columns = instance.shapes
    groups, load = int(columns.groups[shape]), int(instance.loads[columns.deployment[shape]])
    capacity, minimum = int(columns.capacity[shape]), instance.limits[int(columns.deployment[shape])].minimum
    held = bins.slots[:, bins.sizes.index(int(columns.size[shape]))] * _allowed(instance, bins, shape)
    container = bins.containers[Container(int(columns.container[shape]))] if groups > 1 else np.arange(len(bins))
    ids, slots = summed(container, held)
    most = int((slots // groups).sum())
    if kind not in bins.domains:
        # Nothing is lost, or a GPU: the largest replica, which may be of any shape.
        largest = int(columns.capacity[instance.of_deployment(int(columns.deployment[shape]))].max())
        needed = load if not rest else max(load, rest + largest)
        return (), min(most, max(minimum, -(-needed // capacity))), True
    domain = bins.domains[kind]
    # A container whose bins all lie in one domain keeps a replica there.
    pairs = np.unique(np.column_stack((container, domain)), axis=0)
    if len(pairs) == len(ids):
        # With more of it than this in one domain one replica can go: what is left without the domain stays, and this much is in it besides.
        owners, in_domain = summed(pairs[:, 1], slots // groups)
        own = np.minimum(in_domain, -(-max(rest, load - rest) // capacity))
        return _touched(instance, shape, kind, in_domain), min(most, max(minimum, int(own.sum()))), True
    owners, in_domain = summed(domain, held)
    # As in `counts`: a replica touches at most as many domains as it has groups.
    touches = min(groups, len(owners))
    limit = min(most, max(minimum, -(-load // capacity), (touches + 1) * -(-rest // capacity)))
    return _touched(instance, shape, kind, in_domain), limit, False


def _touched(instance: Instance, shape: int, kind: str, in_domain: IntArray) -> tuple[int, ...]:
    """Replicas of a shape that may touch each domain of a kind: what it holds, and what its deployment may have there."""
    spread = instance.rules_of(int(instance.shapes.deployment[shape])).spread
    most = spread.most if spread is not None and spread.kind == kind else FAR
    return tuple(np.minimum(in_domain[in_domain > 0], most).tolist())


def _allowed(instance: Instance, bins: PoolBins, shape: int) -> BoolArray:
    """Bins that the deployment of a shape may use [bins]."""
    only = instance.rules_of(int(instance.shapes.deployment[shape])).only
    return np.asarray(bins.domains[only] == 1) if only else np.ones(len(bins), dtype=np.bool_)


def hosting(question: Question, shapes: Iterable[int], kind: str) -> int:
    """Domains of a kind that can hold something of at least one of the shapes, wherever their pools have them."""
    found: set[int] = set()
    columns = question.instance.shapes
    for shape in shapes:
        if question.limits[shape]:
            bins = question.bins[int(columns.pool[shape])]
            groups = int(columns.groups[shape]) if question.local[shape] else 1
            container = bins.containers[Container(int(columns.container[shape]))] if groups > 1 else np.arange(len(bins))
            _, where = np.unique(container, return_inverse=True)
            _, slots = summed(container, question.slots(shape))
            found.update(bins.domains[kind][slots[where.reshape(-1)] >= groups].tolist())
    return len(found)


def ceiling(question: Question) -> int:
    """What all free GPUs cost at most: no plan costs more."""
    columns, most = question.instance.shapes, 0
    for pool, bins in question.bins.items():
        mine = question.instance.of_pool(pool)
        dearest = max(-(-weight // gpus) for weight, gpus in zip(question.weights[mine].tolist(), columns.gpus[mine].tolist(), strict=True))
        most += dearest * int(bins.scopes.free.sum())
    return most

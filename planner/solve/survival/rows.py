"""The rows in which deployments meet, over counts alone: nested rows of every pool, rounded container by container, and budgets.

A group of size j takes at least floor(j / k) slots of size k, whatever the sizes, and replicas that stay inside one container c share its slots, so for every k and g::

    sum_s floor(floor(k_s / k) groups_s / g) n_s <= sum_c floor(S[c,k] / g)

with all shapes for g = 1, and for g > 1 those that stay inside one container. Source: the rounding is Chvatal's, "Edmonds polytopes and a hierarchy of
combinatorial problems" (1973).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from planner.solve.decomposition.split import Parts
from planner.solve.instance import BoolArray, Container, Instance, IntArray
from planner.solve.survival.knapsack import Cap, Group, SurvivingKnapsack
from planner.solve.survival.packing import ANY
from planner.solve.survival.question import FAR, PoolBins, Question, hosting, summed

Line = tuple[tuple[int, ...], int]
"""Coefficients of all shapes, and the right-hand side."""

FEW_AREAS = 4
"""Most sets of bins that deployments may use whose unions all have rows; of more only the union of all."""


def pool_rows(instance: Instance, bins: PoolBins) -> list[Line]:
    """Rows of one pool: of all its bins, and of those that some deployments may not leave."""
    columns = instance.shapes
    here = columns.pool == bins.pool
    found: dict[tuple[int, ...], int] = {}
    pinned = {Container.ANYWHERE, *(Container(value) for value in np.unique(columns.container[here & (columns.groups > 1)]).tolist())}
    for inside, confined in [(np.ones(len(bins), dtype=np.bool_), here), *_areas(instance, bins, here)]:
        for position, size in enumerate(bins.sizes):
            takes = np.where(confined, columns.size // size * columns.groups, 0)
            for container in sorted(pinned):
                stays = (columns.groups == 1) | (columns.container >= container)
                degrees = np.unique(columns.groups[confined & (columns.groups > 1) & (columns.container == container)]).tolist()
                _, slots = summed(bins.containers[container], np.where(inside, bins.slots[:, position], 0))
                for step in [1, *degrees] if container is Container.ANYWHERE else degrees:
                    use = tuple((np.where(stays, takes, 0) // step).tolist())
                    if any(use):
                        found[use] = min(found.get(use, FAR), int((slots // step).sum()))
    return list(found.items())


def _areas(instance: Instance, bins: PoolBins, here: BoolArray) -> list[tuple[BoolArray, BoolArray]]:
    """Bins of a pool that deployments may not leave [bins], and the shapes of the pool that are confined to them [n].

    ::

        sum_{s confined to A} ... n_s <= what A holds                every area A

    Areas are what a deployment may use, and unions of these: demand that fits into each of two need not fit into both.
    """
    columns = instance.shapes
    own: dict[int, BoolArray] = {}
    for deployment in np.unique(columns.deployment[here]).tolist():
        only = instance.rules_of(deployment).only
        if only:
            own[deployment] = np.asarray(bins.domains[only] == 1)
    distinct = list({mask.tobytes(): mask for mask in own.values() if not mask.all()}.values())
    unions = dict.fromkeys(mask.tobytes() for mask in distinct)
    for number in range(2, len(distinct) + 1) if len(distinct) <= FEW_AREAS else ([len(distinct)] if distinct else []):
        for together in combinations(distinct, number):
            unions[np.logical_or.reduce(together).tobytes()] = None
    found = []
    for stored in unions:
        inside = np.frombuffer(stored, dtype=np.bool_)
        mine = [deployment for deployment, mask in own.items() if not (mask & ~inside).any()]
        found.append((inside, here & np.isin(columns.deployment, mine)))
    return found


def budget_rows(instance: Instance) -> list[Line]:
    """Rows of the budget: money, and GPUs of a type."""
    found: list[Line] = []
    if instance.budget.per_hour is not None:
        found.append((tuple(instance.shapes.price.tolist()), instance.budget.per_hour))
    for limited in instance.budget.gpus:
        mine = np.isin(instance.shapes.pool, limited.pools)
        found.append((tuple(np.where(mine, instance.shapes.gpus, 0).tolist()), limited.limit))
    return found


def parts_of(question: Question) -> Parts:
    """Take the deployments apart."""
    instance = question.instance
    lines = [line for bins in question.bins.values() for line in pool_rows(instance, bins)] + budget_rows(instance)
    nothing: IntArray = np.zeros(0, dtype=np.int64)
    own = tuple(instance.of_deployment(deployment) for deployment in range(instance.deployments))
    return Parts(
        shapes=own,
        knapsacks=tuple(_knapsack(question, deployment, mine) for deployment, mine in enumerate(own)),
        cost=question.weights,
        use=np.array([use for use, _ in lines], dtype=np.int64).reshape(len(lines), len(instance.shapes)),
        room=np.array([room for _, room in lines], dtype=np.int64),
        others=nothing,
        most=nothing,
        others_cost=nothing,
        others_use=np.zeros((len(lines), 0), dtype=np.int64),
        switches={},
    )


def _knapsack(question: Question, deployment: int, mine: IntArray) -> SurvivingKnapsack:
    columns, kind = question.instance.shapes, question.kinds[deployment]
    groups: list[Group] = []
    spread = question.instance.rules_of(deployment).spread
    each = spread.most if spread is not None and spread.kind == kind else ANY
    everything = frozenset(range(len(mine)))
    if kind in {"", "gpu"}:
        groups.append(Group(everything, FAR))
    else:
        for pool in np.unique(columns.pool[mine]).tolist():
            together = np.flatnonzero(columns.pool[mine] == pool)
            domains = hosting(question, mine[together].tolist(), kind)
            if domains:
                groups.append(Group(frozenset(together.tolist()), domains, each))
        groups.append(Group(everything, max(1, hosting(question, mine.tolist(), kind)), each))
        if len(groups) == 2:
            groups.pop()
    limits = question.instance.limits[deployment]
    forms = columns.form[mine].tolist()
    return SurvivingKnapsack(
        tuple(columns.capacity[mine].tolist()),
        tuple(question.limits[mine].tolist()),
        tuple(question.held[shape] for shape in mine.tolist()),
        tuple(groups),
        int(question.instance.loads[deployment]),
        question.rest[deployment],
        limits.minimum,
        _caps(question, deployment, mine),
        tuple(tuple(i for i, form in enumerate(forms) if form == one) for one in sorted(set(forms))) if limits.one_shape else (),
    )


def _caps(question: Question, deployment: int, mine: IntArray) -> tuple[Cap, ...]:
    """Most replicas: as asked, and so many times as many as a domain may hold as there are domains that hold something.

    ::

        sum_{s on g} n_s <= most D_g          every pool g, and all together
    """
    everything = frozenset(range(len(mine)))
    maximum, spread = question.instance.limits[deployment].maximum, question.instance.rules_of(deployment).spread
    found = [] if maximum is None else [Cap(everything, maximum)]
    if spread is not None:
        pools = question.instance.shapes.pool[mine]
        together = [np.flatnonzero(pools == pool) for pool in np.unique(pools).tolist()]
        if len(together) > 1:
            together.append(np.arange(len(mine)))
        found += [Cap(frozenset(own.tolist()), spread.most * hosting(question, mine[own].tolist(), spread.kind)) for own in together]
    return tuple(found)

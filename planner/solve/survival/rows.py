"""The rows in which deployments meet, over counts alone: nested rows of every pool, rounded container by container, and budgets.

A group of size j takes at least floor(j / k) slots of size k, whatever the sizes, and replicas that stay inside one container c share its slots, so for every k and g::

    sum_s floor(floor(k_s / k) groups_s / g) n_s <= sum_c floor(S[c,k] / g)

with all shapes for g = 1, and for g > 1 those that stay inside one container. Source: the rounding is Chvatal's, "Edmonds polytopes and a hierarchy of
combinatorial problems" (1973).
"""

from __future__ import annotations

import numpy as np

from planner.solve.decomposition.split import Parts
from planner.solve.instance import Container, Instance, IntArray
from planner.solve.survival.knapsack import Group, SurvivingKnapsack
from planner.solve.survival.question import FAR, PoolBins, Question, hosting, summed

Line = tuple[tuple[int, ...], int]
"""Coefficients of all shapes, and the right-hand side."""


def pool_rows(instance: Instance, bins: PoolBins) -> list[Line]:
    """Rows of one pool."""
    columns = instance.shapes
    here = columns.pool == bins.pool
    found: dict[tuple[int, ...], int] = {}
    pinned = {Container.ANYWHERE, *(Container(value) for value in np.unique(columns.container[here & (columns.groups > 1)]).tolist())}
    for position, size in enumerate(bins.sizes):
        takes = np.where(here, columns.size // size * columns.groups, 0)
        for container in sorted(pinned):
            stays = (columns.groups == 1) | (columns.container >= container)
            degrees = np.unique(columns.groups[here & (columns.groups > 1) & (columns.container == container)]).tolist()
            _, slots = summed(bins.containers[container], bins.slots[:, position])
            for step in [1, *degrees] if container is Container.ANYWHERE else degrees:
                use = tuple((np.where(stays, takes, 0) // step).tolist())
                if any(use):
                    found[use] = min(found.get(use, FAR), int((slots // step).sum()))
    return list(found.items())


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
    everything = frozenset(range(len(mine)))
    if kind in {"", "gpu"}:
        groups.append(Group(everything, FAR))
    else:
        for pool in np.unique(columns.pool[mine]).tolist():
            together = np.flatnonzero(columns.pool[mine] == pool)
            domains = hosting(question, mine[together].tolist(), kind)
            if domains:
                groups.append(Group(frozenset(together.tolist()), domains))
        groups.append(Group(everything, max(1, hosting(question, mine.tolist(), kind))))
        if len(groups) == 2:
            groups.pop()
    return SurvivingKnapsack(
        tuple(columns.capacity[mine].tolist()),
        tuple(question.limits[mine].tolist()),
        tuple(np.maximum(question.hosts[mine], 1).tolist()),
        tuple(groups),
        int(question.instance.loads[deployment]),
        question.rest[deployment],
    )

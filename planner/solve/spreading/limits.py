"""Limits on the replicas of several deployments that every plan keeps and given counts break, pool by pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.solve.instance import Instance
from planner.solve.spreading.fractions import Split, areas_of
from planner.solve.spreading.limit import Limit, limit_of
from planner.solve.spreading.patterns import LARGEST, Kind, Packing, broken


class Limits:
    """The ways to tell that counts of an instance cannot be placed apart: patterns where every scope is a domain of its own, else fractions of replicas."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.packings: list[_Pool] = []
        self.splits: list[Split] = []
        columns = instance.shapes
        kinds: dict[str, set[int]] = {}
        for deployment in range(instance.deployments):
            spread = instance.rules_of(deployment).apart
            if spread is not None:
                kinds.setdefault(spread.kind, set()).update(np.unique(columns.pool[instance.of_deployment(deployment)]).tolist())
        for kind, pools in sorted(kinds.items()):
            together = []
            for pool in sorted(pools):
                labels, free = instance.pools[pool].label(kind), instance.pools[pool].free
                if labels is None or not len(labels):
                    continue
                if len(np.unique(labels)) == len(labels) and int(free.max()) <= LARGEST:
                    self.packings.append(_Pool(instance, kind, pool))
                else:
                    together.append(pool)
            self.splits.extend(Split(instance, area) for area in areas_of(instance, kind, together))

    def __len__(self) -> int:
        return len(self.packings) + len(self.splits)

    def broken(self, counts: Sequence[int], opened: Mapping[int, Mapping[int, int]] | None = None) -> Iterator[Limit]:
        """Limits that counts by shape break, at most one a pool and kind of domain.

        `opened` tells of every pool where scopes are opened for a price how many of so many free GPUs are.
        """
        opened = opened or {}
        packed = (packing.broken(counts, opened.get(packing.pool)) for packing in self.packings)
        found = (*packed, *(split.broken(counts) for split in self.splits))
        yield from (limit for limit in found if limit is not None)


class _Pool:
    """One pool whose scopes are domains of their own; replicas that stay where they run are left out, and GPUs kept free, which may be anywhere."""

    def __init__(self, instance: Instance, kind: str, pool: int) -> None:
        columns = instance.shapes
        fresh = instance.fresh_of_pool(pool)
        self.instance, self.pool, self.mine = instance, pool, fresh[~instance.spare[fresh]]
        free, many = np.unique(instance.pools[pool].free, return_counts=True)
        rows = zip(*(column[self.mine].tolist() for column in (columns.deployment, columns.size, columns.groups)), strict=True)
        self.of_shape = [Kind(*row) for row in rows]
        spreads = {number: instance.rules_of(number).spread for number in range(instance.deployments)}
        self.packing = Packing(
            tuple(sorted(set(self.of_shape))),
            tuple(free[free > 0].tolist()),
            tuple(many[free > 0].tolist()),
            {number: spread.most for number, spread in spreads.items() if spread is not None and spread.kind == kind},
        )

    def broken(self, counts: Sequence[int], opened: Mapping[int, int] | None) -> Limit | None:
        """Find a limit that counts by shape break; in the scopes that are `opened`, by their free GPUs, where that has a price."""
        number = {kind: position for position, kind in enumerate(self.packing.kinds)}
        demand = [0] * len(number)
        for shape, kind in zip(self.mine.tolist(), self.of_shape, strict=True):
            demand[number[kind]] += counts[shape] * kind.groups
        packing = self.packing
        if opened is not None:
            packing = replace(packing, many=tuple(opened.get(free, 0) for free in packing.free))
        found = broken(packing, demand)
        if found is None:
            return None
        values, most = found
        weight = np.zeros(len(self.instance.shapes), dtype=np.int64)
        weight[self.mine] = [int(values[number[kind]]) * kind.groups for kind in self.of_shape]
        if opened is None:
            return limit_of(weight, most, self._capped(values))
        each = packing.worth(values)
        return limit_of(weight, 0, self._capped(values), {(self.pool, free): value for free, value in zip(packing.free, each, strict=True)})

    def _capped(self, values: np.ndarray) -> frozenset[int]:
        """Deployments whose number of replicas in a scope the limit needs."""
        left, told = dict(self.packing.most), self.packing.worth(values)
        for deployment in sorted(self.packing.most):
            fewer = {number: cap for number, cap in left.items() if number != deployment}
            if replace(self.packing, most=fewer).worth(values) == told:
                left = fewer
        return frozenset(left)

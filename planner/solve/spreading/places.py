"""Places for chosen numbers of replicas, so that no failure domain holds too many of a deployment: one shape after another, best fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.solve.instance import Container, Instance, IntArray
from planner.solve.layout import container_ids
from planner.solve.seating import Placed

Spot = tuple[int, ...]
"""Scopes of the groups of one replica, within its pool."""


@dataclass
class Places:
    """Spots of the replicas of every shape, and how many found none."""

    spots: dict[int, list[Spot]] = field(default_factory=dict)
    missing: dict[int, int] = field(default_factory=dict)


def placeable(instance: Instance) -> bool:
    """Whether places can be found scope by scope: every scope lies in one domain of each kind asked for, and no group needs a pair or mesh of its own."""
    columns = instance.shapes
    if bool((columns.within_part & (columns.size > 1)).any()):
        return False
    return all(pool.label(kind) is not None for number, pool in enumerate(instance.pools) for kind in instance.kinds_of_pool(number))


class Sites:
    """Free GPUs of all scopes, and how many replicas of each deployment every domain holds, while replicas are placed.

    `instance` has its spreads as `spread`; `offered` maps a pool to the GPUs that each of its scopes may give [D] beside the replicas that stay. With `roomy` the emptiest scope comes first, else the fullest.
    """

    def __init__(self, instance: Instance, offered: dict[int, IntArray], stays: Sequence[Placed] = (), *, roomy: bool = False) -> None:
        self.instance, self.roomy = instance, roomy
        self.left = {pool: free.copy() for pool, free in offered.items()}
        self.held: list[IntArray] = []
        self._containers: dict[tuple[int, Container], IntArray] = {}
        for deployment in range(instance.deployments):
            spread = instance.rules_of(deployment).apart
            most = -1
            for pool in self.left:
                named = None if spread is None else instance.pools[pool].domains.get(spread.kind)
                if named:
                    most = max(most, *(label for own in named for label in own))
            self.held.append(np.zeros(most + 1, dtype=np.int64))
        for replica in stays:
            labels = self.label(replica.shape)
            if labels is not None:
                deployment = int(instance.shapes.deployment[replica.shape])
                self.held[deployment][np.unique(labels[[group.scope for group in replica.groups]])] += 1

    def label(self, shape: int) -> IntArray | None:
        """Domain of every scope of a shape's pool that its deployment spreads over [D]; None where it does not spread, or only keeps GPUs free."""
        spread = self.instance.rules_of(int(self.instance.shapes.deployment[shape])).apart
        if spread is None or self.instance.spare[shape]:
            return None
        return self.instance.pools[int(self.instance.shapes.pool[shape])].label(spread.kind)

    def room(self, shape: int) -> IntArray:
        """Groups of a shape that every scope of its pool may still take [D], each domain for itself."""
        columns = self.instance.shapes
        pool, deployment = int(columns.pool[shape]), int(columns.deployment[shape])
        rules, scopes = self.instance.rules_of(deployment), self.instance.pools[pool]
        found: IntArray = self.left[pool] // int(columns.size[shape])
        if rules.only and (own := scopes.label(rules.only)) is not None:
            found = np.where(own > 0, found, 0)
        labels = self.label(shape)
        if labels is not None and rules.spread is not None:
            found = np.where(self.held[deployment][labels] < rules.spread.most, found, 0)
        return found

    def place(self, shape: int, count: int, places: Places) -> int:
        """Place up to `count` replicas of a shape, and give their number."""
        spots = places.spots.setdefault(shape, [])
        before = len(spots)
        if self.instance.shapes.groups[shape] == 1:
            self._single(shape, count, spots)
        else:
            while len(spots) - before < count and self._together(shape, spots):
                pass
        return len(spots) - before

    def take(self, shape: int, spot: Spot) -> None:
        """Count a replica of a shape on its scopes."""
        pool, deployment = int(self.instance.shapes.pool[shape]), int(self.instance.shapes.deployment[shape])
        np.subtract.at(self.left[pool], list(spot), int(self.instance.shapes.size[shape]))
        labels = self.label(shape)
        if labels is not None:
            self.held[deployment][np.unique(labels[list(spot)])] += 1

    def _order(self, pool: int, scopes: IntArray, *first: IntArray) -> IntArray:
        """Sort scopes: by `first`, then the fullest or the emptiest, then by name."""
        left = self.left[pool][scopes]
        keys = (self.instance.pools[pool].order[scopes], -left if self.roomy else left, *reversed(first))
        found: IntArray = scopes[np.lexsort(keys)]
        return found

    def _single(self, shape: int, count: int, spots: list[Spot]) -> None:
        """Place replicas of one group: scope after scope takes as many as it holds, or one each, the emptiest first."""
        columns = self.instance.shapes
        pool, deployment = int(columns.pool[shape]), int(columns.deployment[shape])
        labels, spread = self.label(shape), self.instance.rules_of(deployment).spread
        while count:
            room = self.room(shape)
            scopes = self._order(pool, np.flatnonzero(room > 0))
            if not len(scopes):
                return
            taken = np.minimum(room[scopes], 1) if self.roomy else room[scopes]
            if labels is not None and spread is not None:
                taken = _within(taken, labels[scopes], spread.most - self.held[deployment])
            before = np.cumsum(taken) - taken
            taken = np.clip(count - before, 0, taken)
            self.left[pool][scopes] -= taken * int(columns.size[shape])
            if labels is not None:
                np.add.at(self.held[deployment], labels[scopes], taken)
            spots.extend((scope,) for scope in np.repeat(scopes, taken).tolist())
            count -= int(taken.sum())

    def _containers_of(self, shape: int) -> IntArray:
        """Container of every scope that must hold all groups of a shape, numbered from 0 [D]."""
        key = int(self.instance.shapes.pool[shape]), Container(int(self.instance.shapes.container[shape]))
        if key not in self._containers:
            _, found = np.unique(container_ids(self.instance.pools[key[0]], key[1]), return_inverse=True)
            self._containers[key] = found.reshape(-1)
        return self._containers[key]

    def _together(self, shape: int, spots: list[Spot]) -> bool:
        """Place one replica of several groups in the container with least room to spare, in as few domains as hold it."""
        columns = self.instance.shapes
        pool, groups = int(columns.pool[shape]), int(columns.groups[shape])
        room, ids, labels = self.room(shape), self._containers_of(shape), self.label(shape)
        held = np.bincount(ids, weights=room).astype(np.int64)
        ready = np.flatnonzero(held >= groups)
        if not len(ready):
            return False
        chosen = int(ready[np.argmax(held[ready]) if self.roomy else np.argmin(held[ready])])
        inside = np.flatnonzero((ids == chosen) & (room > 0))
        if labels is None:
            order = self._order(pool, inside)
        else:
            own = np.bincount(labels[inside], weights=room[inside]).astype(np.int64)
            whole = np.flatnonzero(own >= groups)
            if len(whole):
                inside = inside[labels[inside] == whole[np.argmin(own[whole])]]
                order = self._order(pool, inside)
            else:
                order = self._order(pool, inside, -own[labels[inside]], labels[inside])
        taken = room[order]
        taken = np.clip(groups - (np.cumsum(taken) - taken), 0, taken)
        spot = tuple(np.repeat(order, taken).tolist())
        self.take(shape, spot)
        spots.append(spot)
        return True


def _within(taken: IntArray, labels: IntArray, open_: IntArray) -> IntArray:
    """Cut what scopes take, in their order, to what is `open_` [domains] in the domain of each."""
    order = np.argsort(labels, kind="stable")
    own, sums = labels[order], np.cumsum(taken[order])
    first = np.ones(len(own), dtype=np.bool_)
    np.not_equal(own[1:], own[:-1], out=first[1:])
    start = (sums - taken[order])[first][np.cumsum(first) - 1]
    after = np.minimum(sums - start, open_[own])
    before = np.minimum(sums - taken[order] - start, open_[own])
    found = np.empty_like(taken)
    found[order] = after - before
    return found


def kinds_in_order(instance: Instance, counts: Sequence[int], *, tight_first: bool) -> list[int]:
    """Shapes in use in the order in which they are placed: the largest groups first, replicas of several before single ones, the tightest spreads first among equals."""
    columns = instance.shapes
    running: dict[int, int] = {}
    for shape, count in enumerate(counts):
        running[int(columns.deployment[shape])] = running.get(int(columns.deployment[shape]), 0) + count

    def key(shape: int) -> tuple[float, ...]:
        deployment, pool = int(columns.deployment[shape]), instance.pools[int(columns.pool[shape])]
        spread = instance.rules_of(deployment).apart
        labels = None if spread is None else pool.label(spread.kind)
        tight = 0.0
        if labels is not None and spread is not None:
            domains = len(np.unique(labels[pool.free >= columns.size[shape]]))
            tight = running[deployment] / max(1, spread.most * domains)
        single = columns.groups[shape] == 1
        together = (single, -int(columns.container[shape]), -int(columns.groups[shape]))
        return (-int(columns.size[shape]), *((-tight, *together) if tight_first else (*together, -tight)), shape)

    return sorted((shape for shape, count in enumerate(counts) if count), key=key)


WAYS = ((False, False), (True, False), (False, True), (True, True))
"""(tightest spreads first, emptiest scopes first): orders in which places are tried, one after another."""


def places_of(instance: Instance, counts: Sequence[int], offered: dict[int, IntArray], stays: Sequence[Placed] = ()) -> Places:
    """Places of given counts by shape beside replicas that stay; those of the way that misses fewest GPUs where none finds them all."""
    counts = [0 if kept else count for kept, count in zip(instance.kept.tolist(), counts, strict=True)]
    best: Places | None = None
    fewest = 0
    for tight_first, roomy in WAYS:
        sites, places = Sites(instance, offered, stays, roomy=roomy), Places()
        for shape in kinds_in_order(instance, counts, tight_first=tight_first):
            placed = sites.place(shape, counts[shape], places)
            if placed < counts[shape]:
                places.missing[shape] = counts[shape] - placed
        lost = sum(int(instance.shapes.gpus[shape]) * number for shape, number in places.missing.items())
        if best is None or lost < fewest:
            best, fewest = places, lost
        if not lost:
            break
    assert best is not None
    return best


def all_free(instance: Instance) -> dict[int, IntArray]:
    """All free GPUs of every pool that has shapes."""
    return {pool: instance.pools[pool].free for pool in range(len(instance.pools)) if len(instance.of_pool(pool))}

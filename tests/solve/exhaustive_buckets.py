"""Brute force over loads in buckets: every way to send whole slices to shapes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from planner.solve.buckets import NOT_SERVED
from planner.solve.instance import Instance


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a number as a sum of so many, order counting."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def serves(instance: Instance, deployment: int, counts: tuple[int, ...], slices: int | None = None) -> bool:
    """Whether replicas in these numbers have room for so many slices of every bucket (all of them where no number is given)."""
    slicing = instance.slicing_of(deployment)
    assert slicing is not None
    assert instance.shapes.use is not None
    total = slicing.slices if slices is None else slices
    own = [s for s in range(len(counts)) if instance.shapes.deployment[s] == deployment]
    use = instance.shapes.use[own].tolist()
    ways = [
        [way for way in compositions(total, len(own)) if all(not sent or use[s][bucket] != NOT_SERVED for s, sent in enumerate(way))]
        for bucket in slicing.buckets
    ]
    return any(
        all(
            sum(use[s][bucket] * way[s] for bucket, way in enumerate(chosen) if way[s]) <= slicing.unit * counts[own[s]]
            for s in range(len(own))
        )
        for chosen in product(*ways)
    )


def greatest_share(instance: Instance, deployment: int, counts: tuple[int, ...]) -> int:
    """Greatest share of every bucket [1e-6] that whole slices make up."""
    slicing = instance.slicing_of(deployment)
    assert slicing is not None
    found = 0
    while serves(instance, deployment, counts, found + 1):
        found += 1
    return found * 10**6 // slicing.slices

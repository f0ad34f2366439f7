"""Brute force over loads in buckets: every way to send whole slices to shapes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from operator import mul

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


def served(instance: Instance, deployment: int, counts: tuple[int, ...], slices: int, left: int) -> Iterator[tuple[int, ...]]:
    """Every way to serve so many slices of each bucket but at most `left` of them, as the slices of each bucket that go unserved."""
    slicing = instance.slicing_of(deployment)
    assert slicing is not None
    assert instance.shapes.use is not None
    own = [s for s in range(len(counts)) if instance.shapes.deployment[s] == deployment and not instance.spare[s]]
    use = instance.shapes.use[own].tolist()
    ways = [
        [
            (missing, way)
            for missing in range(min(left, slices) + 1)
            for way in compositions(slices - missing, len(own))
            if all(not sent or use[s][bucket] != NOT_SERVED for s, sent in enumerate(way))
        ]
        for bucket in slicing.buckets
    ]
    for chosen in product(*ways):
        if all(
            sum(use[s][bucket] * way[s] for bucket, (_, way) in enumerate(chosen) if way[s]) <= slicing.unit * counts[own[s]]
            for s in range(len(own))
        ):
            yield tuple(missing for missing, _ in chosen)


def serves(instance: Instance, deployment: int, counts: tuple[int, ...], slices: int | None = None) -> bool:
    """Whether replicas in these numbers have room for so many slices of every bucket (all of them where no number is given)."""
    slicing = instance.slicing_of(deployment)
    assert slicing is not None
    return any(True for _ in served(instance, deployment, counts, slicing.slices if slices is None else slices, 0))


def least_unserved(instance: Instance, deployment: int, counts: tuple[int, ...]) -> int | None:
    """Least load that goes unserved when whole slices may, None where even that is more than allowed."""
    slicing, most = instance.slicing_of(deployment), instance.rules_of(deployment).may_go_unserved
    assert slicing is not None
    ways = served(instance, deployment, counts, slicing.slices, slicing.slices if most else 0)
    least = min((-(-sum(map(mul, slicing.loads, way)) // slicing.slices) for way in ways), default=None)
    return None if least is None or least > int(instance.loads[deployment]) * most else least


def greatest_share(instance: Instance, deployment: int, counts: tuple[int, ...]) -> int:
    """Greatest share of every bucket [1e-6] that whole slices make up."""
    slicing = instance.slicing_of(deployment)
    assert slicing is not None
    found = 0
    while serves(instance, deployment, counts, found + 1):
        found += 1
    return found * 10**6 // slicing.slices

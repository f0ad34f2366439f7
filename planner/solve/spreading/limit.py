"""A limit on the replicas of all shapes that every plan keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

from planner.solve.instance import IntArray

SCALES = (8, 840, 100_000)
"""What multipliers are multiplied by before they are rounded, as little as will do."""

SHORT = 1e-6
"""Value of a linear program, in GPUs, below which it is taken to be 0."""


@dataclass(frozen=True)
class Limit:
    """At most `most` of the weighted replicas: a `weight` of every shape [n].

    Where scopes are opened for a price, each that is opened adds to `most` what `opening` says of its (pool, free GPUs). Of deployments that are not `capped` the number of replicas does not matter, only their room.
    """

    weight: IntArray
    most: int
    capped: frozenset[int]
    opening: Mapping[tuple[int, int], int] = field(default_factory=dict)


def limit_of(weight: IntArray, most: int, capped: frozenset[int], opening: Mapping[tuple[int, int], int] | None = None) -> Limit:
    """Give a limit in lowest terms, its right-hand side rounded down."""
    opening = opening or {}
    step = gcd(*weight.tolist(), *opening.values()) or 1
    return Limit(weight // step, most // step, capped, {key: value // step for key, value in opening.items()})

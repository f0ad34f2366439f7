"""A load in buckets as the formulation sees it: slices, and the units in which a replica's room is counted."""

from __future__ import annotations

from dataclasses import dataclass

NOT_SERVED = -1
"""Use of a replica by a bucket that it may not serve."""


@dataclass(frozen=True)
class Slicing:
    """A load in buckets, each cut into `slices` equal slices that go whole to one shape.

    `shares` [1e-6 of the load] are those of the buckets, `loads` their loads in units of the deployment's load, rounded up. A replica has room for
    `unit` units of what slices take of it.
    """

    slices: int
    unit: int
    shares: tuple[int, ...]
    loads: tuple[int, ...]

    @property
    def buckets(self) -> range:
        """Numbers of the buckets."""
        return range(len(self.loads))

"""What a replica serves of every bucket of its load, and its figures at that mix."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.candidates.menu import Menu
from planner.plan.outcome import Outcome, PlacedReplica
from planner.plan.shape import Shape
from planner.problem.load import LoadedProblem
from planner.problem.workload import Bucket


@dataclass(frozen=True)
class Served:
    """What a replica serves of one bucket: `load` in the deployment's unit, and the `fraction` of the replica that takes."""

    bucket: Bucket
    part: Shape
    load: float

    @property
    def fraction(self) -> float:
        """Share of the replica's room that the load takes."""
        return self.load / self.part.capacity


@dataclass(frozen=True)
class Mix:
    """A replica of a load in buckets: `main` holds the figures that are one, those of the bucket that takes most of it.

    `capacity` and `throughput` [output tokens/s] are those of the replica when it is full at this mix.
    """

    main: Shape
    served: tuple[Served, ...]
    capacity: float
    throughput: float


def mix_of(loaded: LoadedProblem, menu: Menu, replica: PlacedReplica) -> Mix | None:
    """Mix of a replica; None where its load has no buckets."""
    shape = replica.shape
    buckets = loaded.problem.deployments[shape.deployment].workload.buckets
    if not buckets:
        return None
    load = menu.loads[shape.deployment]
    served = tuple(
        Served(bucket, part, portion * load * float(bucket.part))
        for bucket, part, portion in zip(buckets, shape.parts, replica.portions, strict=True)
        if part is not None and portion > 0
    )
    if not served:
        return Mix(shape, (), shape.capacity, shape.throughput)
    full = math.fsum(item.fraction for item in served)
    return Mix(
        main=max(served, key=lambda item: item.fraction).part,
        served=served,
        capacity=math.fsum(item.load for item in served) / full,
        throughput=tokens_of(served) / full,
    )


def tokens_of(served: tuple[Served, ...]) -> float:
    """Output tokens/s of what is served."""
    return math.fsum(item.fraction * item.part.throughput for item in served)


def carried(loaded: LoadedProblem, menu: Menu, outcome: Outcome, index: int) -> float:
    """Load of a deployment that its replicas carry, in its unit: their capacity, or what they serve of its buckets."""
    own = [replica for replica in outcome.replicas if replica.shape.deployment == index]
    mixes = [mix_of(loaded, menu, replica) for replica in own]
    return math.fsum(
        replica.shape.capacity if mix is None else math.fsum(item.load for item in mix.served)
        for replica, mix in zip(own, mixes, strict=True)
    )

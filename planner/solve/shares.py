"""Shares of all loads as questions of covering loads, and the share that a plan serves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.solve.instance import Instance
from planner.solve.model import Model


@dataclass(frozen=True)
class Served:
    """Share [1e-6] that a plan serves of every load, the proved bound, and the counts of that plan by source of the shape."""

    share: int
    bound: int
    counts: dict[int, int]


def by_shares(instance: Instance) -> bool:
    """Whether a given share is a question of covering loads and nothing else."""
    return not instance.slicing and not instance.rules and not instance.seats and instance.shapes.spare_of is None


def at_share(instance: Instance, share: int) -> Instance:
    """Give the question of the least money at which every deployment has a share [1e-6] of its load."""
    shapes = replace(instance.shapes, capacity=instance.shapes.share)
    loads = np.full(instance.deployments, share, dtype=np.int64)
    return replace(instance, objective="cost" if instance.priced else "gpus", shapes=shapes, loads=loads)


def served(instance: Instance, model: Model, values: tuple[int, ...], bound: int) -> Served:
    """Share that a plan really serves, and its counts without the replicas that it does not need for that."""
    counts = dict(zip(model.instance.source.tolist(), (values[variable] for variable in model.count), strict=True))
    every = np.array([counts.get(source, 0) for source in instance.source.tolist()], dtype=np.int64)
    columns = instance.shapes
    shares, replicas = np.zeros(instance.deployments, dtype=np.int64), np.zeros(instance.deployments, dtype=np.int64)
    np.add.at(shares, columns.deployment, every * columns.share)
    np.add.at(replicas, columns.deployment, every)
    # Loads that no shape is left for count too: their share is zero.
    share = min(int(shares.min()), bound)
    for shape in np.flatnonzero(every).tolist():
        deployment, serves = int(columns.deployment[shape]), int(columns.share[shape])
        least = instance.limits[deployment].minimum
        spare = min(int(every[shape]), int(replicas[deployment]) - least)
        if serves:
            spare = min(spare, (int(shares[deployment]) - share) // serves)
        dropped = max(0, spare)
        every[shape] -= dropped
        shares[deployment] -= dropped * serves
        replicas[deployment] -= dropped
    return Served(share, bound, {int(source): int(count) for source, count in zip(instance.source, every, strict=True) if count})

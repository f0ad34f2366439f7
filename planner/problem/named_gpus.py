"""GPUs that deployments name in `pin` and `forbid`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from planner.diagnostics import Diagnostic, Place
from planner.problem.documents import Deployment
from planner.topology.fabric import Fabric
from planner.topology.occupancy import named_gpus


def usable_gpus(deployment: Deployment, fabric: Fabric) -> tuple[NDArray[np.bool_], list[Diagnostic]]:
    """GPUs [G] that a deployment may use by its `pin` and `forbid`, and the faults in these."""
    path = f"deployments.{deployment.name}"
    pinned, faults = named_gpus([(f"{path}.pin.{number}", entry) for number, entry in enumerate(deployment.pin or ())], fabric.inventory)
    listed = [(f"{path}.forbid.{number}", entry) for number, entry in enumerate(deployment.forbid or ())]
    forbidden, more = named_gpus(listed, fabric.inventory)
    return (pinned if deployment.pin is not None else np.ones_like(pinned)) & ~forbidden, [*faults, *more]


def gpus_known(deployment: Deployment, fabric: Fabric) -> Iterator[Diagnostic]:
    """`pin` and `forbid` name GPUs of the topology, and leave some; parts of a node only where GPUs are alike and billed one by one."""
    if deployment.pin is None and deployment.forbid is None:
        return
    usable, faults = usable_gpus(deployment, fabric)
    yield from faults
    if faults:
        return
    place = Place(path=f"deployments.{deployment.name}.{'forbid' if deployment.pin is None else 'pin'}")
    if not usable.any():
        yield Diagnostic("NO_GPU_ALLOWED", "no GPU is left that the deployment may use", "pin more GPUs, or forbid fewer", place=place)
        return
    first = fabric.inventory.first_gpu
    counts = np.add.reduceat(usable.astype(np.int64), first[:-1])
    for row in np.flatnonzero((counts > 0) & (counts < np.diff(first))).tolist():
        pool = fabric.pools[int(fabric.pool_of_node[row])]
        if pool.wiring.groups or pool.billing == "node":
            reason = "its GPUs are joined in pairs or meshes" if pool.wiring.groups else "it is billed as a whole"
            message = f"some GPUs of {fabric.nodes[row]} may be used and others not, though {reason}"
            yield Diagnostic("RULES_NOT_TOGETHER", message, "name whole nodes there", place=place)
            return

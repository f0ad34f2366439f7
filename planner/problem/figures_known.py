"""Whether the fleet has the GPUs that a deployment's own figures are about."""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalog.gpus import gpu
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity
from planner.problem.documents import Deployment
from planner.topology.fabric import Fabric


def figures_known(deployment: Deployment, fabric: Fabric) -> Iterator[Diagnostic]:
    """Figures are given once for a shape of a GPU type, and of types that the topology has."""
    there = {pool.gpu.name for pool in fabric.pools}
    first: dict[tuple[str, tuple[int, int, int, int]], str] = {}
    for index, entry in enumerate(deployment.throughput or ()):
        place = Place(path=f"deployments.{deployment.name}.throughput.{index}.gpu")
        try:
            known = gpu(entry.gpu).name
        except PlannerError:
            continue  # reported where names are looked up
        key = (known, entry.degrees)
        if key in first and first[key] != entry.gpu:
            message = f"`{entry.gpu}` and `{first[key]}` are the same GPU type, {known}"
            yield Diagnostic("DUPLICATE_VALUE", message, "keep one of them", place=place)
        elif known not in there:
            message = f"figures of {known} are given, and no node of the topology has it"
            yield Diagnostic("FIGURES_WITHOUT_GPUS", message, f"the topology has {', '.join(sorted(there))}", Severity.WARNING, place)
        first.setdefault(key, entry.gpu)

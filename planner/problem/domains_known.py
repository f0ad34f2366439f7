"""Whether the topology has the failure domains that a deployment's rules name."""

from __future__ import annotations

from collections.abc import Iterator

from planner.diagnostics import Diagnostic, Place
from planner.problem.documents import Deployment
from planner.topology.fabric import Fabric

EVERYWHERE = frozenset({"gpu", "node"})
"""Kinds that every GPU has a domain of."""


def failure_domains_known(deployment: Deployment, fabric: Fabric) -> Iterator[Diagnostic]:
    """Every node has a domain of the kinds that `spread` and `resilience` name."""
    asked = []
    if deployment.spread is not None:
        asked.append(("spread.over", deployment.spread.over))
    if deployment.resilience is not None:
        asked.append(("resilience.lose", deployment.resilience.lose))
    groups = fabric.inventory.groups
    for path, kind in asked:
        yield from _billed_by_gpu(fabric, kind, Place(path=f"deployments.{deployment.name}.{path}"))
        if kind in EVERYWHERE:
            continue
        without = [group for group in groups if not (group.leaves if kind == "leaf" else kind in group.failure_domains)]
        if not without:
            continue
        place = Place(path=f"deployments.{deployment.name}.{path}")
        if len(without) < len(groups):
            message = f"{without[0].names[0]} has no {kind}, other nodes have"
            yield Diagnostic(
                "FAILURE_DOMAIN_MISSING",
                message,
                f"give every node its {kind} in the topology, also those that the deployment does not use",
                place=place,
            )
            continue
        named = sorted({name for group in groups for name in group.failure_domains})
        known = ["gpu", "node", *(["leaf"] if all(group.leaves for group in groups) else []), *named]
        hint = f"the topology has {', '.join(known)}"
        hint += "; name the leaf of the nodes there" if kind == "leaf" else f"; add `failure_domains: {{{kind}: ...}}` to its nodes"
        yield Diagnostic("FAILURE_DOMAIN_UNKNOWN", f"no node of the topology has a {kind}", hint, place=place)


def _billed_by_gpu(fabric: Fabric, kind: str, place: Place) -> Iterator[Diagnostic]:
    """No NVLink domain of several nodes is billed by whole node where its nodes may fail one by one."""
    for group in fabric.inventory.groups:
        one = kind in {"gpu", "leaf"} or len(set(group.failure_domains.get(kind, ()))) == 1
        if group.nvlink_domain is not None and group.price.billing == "node" and not one:
            message = f"nodes of {group.nvlink_domain} are billed whole and fail one by one; which of them to open is not planned together"
            yield Diagnostic(
                "RULES_NOT_TOGETHER", message, "write `billing: gpu` for these nodes, or name a larger failure domain", place=place
            )
            return

"""Faults that show only when groups are seen together: domains of unlike nodes, names nobody bears, networks that join nothing."""

from __future__ import annotations

from collections.abc import Sequence

from planner.catalog.nearest import nearest
from planner.diagnostics import Diagnostic, Place, Severity
from planner.topology.groups import HostGroup
from planner.topology.sources import Sources


def check_together(groups: Sequence[HostGroup], sources: Sources, names_leaf: bool) -> list[Diagnostic]:
    """Find what is wrong between groups that are each in order."""
    return [
        *_check_domains(groups),
        *_check_leaf_ratios(groups, sources, names_leaf=names_leaf),
        *_check_network(groups, names_leaf=names_leaf),
    ]


def _check_domains(groups: Sequence[HostGroup]) -> list[Diagnostic]:
    faults: list[Diagnostic] = []
    domains: dict[str, list[HostGroup]] = {}
    for group in groups:
        if group.nvlink_domain is not None:
            domains.setdefault(group.nvlink_domain, []).append(group)
    for name, members in domains.items():
        first = members[0]
        for group in members[1:]:
            if group.likeness() != first.likeness():
                message = (
                    f"NVLink domain {name} joins {group.names[0]} and {first.names[0]}, which differ in GPU, wiring, nics, price or billing"
                )
                faults.append(
                    Diagnostic(
                        "DOMAIN_MIXED", message, "nodes of one domain must be alike", place=Place(path=f"{group.path}.nvlink_domain")
                    )
                )
        gpus = sum(len(group.names) * group.wiring.gpus for group in members)
        most = first.gpu.scale_up_domain
        if gpus > most:
            message = f"NVLink domain {name} would join {gpus} GPUs, and {first.gpu.name} reaches {most}"
            hint = (
                "give each rack a domain of its own"
                if most > first.wiring.gpus
                else "leave nvlink_domain out: it is for NVL72 and its like"
            )
            faults.append(Diagnostic("DOMAIN_TOO_LARGE", message, hint, place=Place(path=f"{first.path}.nvlink_domain")))
    return faults


def _check_leaf_ratios(groups: Sequence[HostGroup], sources: Sources, *, names_leaf: bool) -> list[Diagnostic]:
    leaves = dict.fromkeys(leaf for group in groups for leaf in group.leaves)
    faults: list[Diagnostic] = []
    for leaf in sources.fabric.leaf_oversubscription:
        if leaf not in leaves and len(groups) == len(sources.groups):
            close = nearest(leaf, leaves, limit=3) if names_leaf else ()
            hint = f"nearest: {', '.join(close)}" if close else "name leaves that nodes hang on"
            place = Place(path=f"fabric.leaf_oversubscription.{leaf}")
            faults.append(Diagnostic("UNKNOWN_LEAF", f"no node hangs on leaf {leaf}", hint, place=place))
    return faults


def _check_network(groups: Sequence[HostGroup], *, names_leaf: bool) -> list[Diagnostic]:
    """Say what was assumed of a network that is only half described."""
    networked = [group for group in groups if group.nics is not None]
    if names_leaf or sum(len(group.names) for group in networked) < 2:
        return []
    message = "no leaf switch is named; all nodes with network interfaces are taken to hang on one leaf"
    return [Diagnostic("LEAF_ASSUMED", message, "write leaf: on the nodes", Severity.NOTE, Place(path=networked[0].path))]

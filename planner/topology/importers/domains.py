"""NVLink domains that files name, kept where such GPUs can have them: a rack of NVL72 trays, never a row of eight-GPU servers."""

from __future__ import annotations

from collections.abc import Sequence

from planner.diagnostics import Diagnostic, Severity
from planner.topology.importers.completing import Node, alike
from planner.topology.importers.facts import several, shown
from planner.topology.importers.tier_labels import plain_name


def settle_domains(nodes: Sequence[Node]) -> list[Diagnostic]:
    """Keep, narrow or drop the domain of every node in place; what is dropped becomes a failure domain, and is told."""
    found: list[Diagnostic] = []
    members: dict[str, list[Node]] = {}
    for node in nodes:
        if node.host.domain is not None:
            members.setdefault(node.host.domain, []).append(node)
    dropped: dict[str, list[str]] = {}
    narrowed: list[str] = []
    for name, group in members.items():
        for part in _parts(name, group, narrowed):
            first = part[0]
            reaches = first.gpu.scale_up_domain
            joined = sum(node.gpus for node in part)
            if reaches <= max(node.gpus for node in part) or joined > reaches or first.keys.get("scale_up", "nvswitch") != "nvswitch":
                _drop(part)
                if len(part) > 1:
                    dropped.setdefault(f"{first.gpu.name} joins {reaches} GPUs at most", []).append(f"{name} ({joined} GPUs)")
            elif not alike(part):
                found.append(_made_alike(name, part))
    if narrowed:
        message = f"{shown(narrowed, 4)} too large for one NVLink domain; the parts named in the file are taken"
        found.append(Diagnostic("DOMAIN_NARROWED", message, "check the names of domains and their parts", Severity.NOTE))
    for reason, names in dropped.items():
        message = f"{several(len(names), 'block')} of nodes cannot be NVLink domains, {reason}: {shown(names, 4)}"
        hint = "they are kept as failure domains; give --gpu with the type of the rack if they are"
        found.append(Diagnostic("DOMAIN_IMPOSSIBLE", message, hint, Severity.WARNING))
    return found


def _parts(name: str, group: list[Node], narrowed: list[str]) -> list[list[Node]]:
    """Nodes of a domain, by the parts the file names where the whole is too large; nodes of other GPU types are apart."""
    by_type: dict[str, list[Node]] = {}
    for node in group:
        by_type.setdefault(node.gpu.name, []).append(node)
    found: list[list[Node]] = []
    for number, alike_type in enumerate(by_type.values()):
        if number:
            for node in alike_type:
                node.host.domain = plain_name(f"{name}-{node.gpu.name}")
        whole = sum(node.gpus for node in alike_type) <= alike_type[0].gpu.scale_up_domain
        if whole or not all(node.host.part_of_domain for node in alike_type):
            found.append(alike_type)
            continue
        narrowed.append(name)
        parts: dict[str, list[Node]] = {}
        for node in alike_type:
            node.host.failure_domains.setdefault("domain", plain_name(name))
            node.host.domain = node.host.part_of_domain
            parts.setdefault(node.host.part_of_domain or "", []).append(node)
        found.extend(parts.values())
    return found


def _drop(part: Sequence[Node]) -> None:
    for node in part:
        if len(part) > 1 and node.host.domain is not None:
            node.host.failure_domains.setdefault("block", plain_name(node.host.domain))
        node.host.domain = None


def _made_alike(name: str, part: Sequence[Node]) -> Diagnostic:
    """Give all trays of a domain the least that one of them has."""
    with_nics = [node.nics for node in part if node.nics is not None]
    fewest = (
        min(with_nics, key=lambda nics: (nics["count"], float(nics["speed"].removesuffix("Gb/s")))) if len(with_nics) == len(part) else None
    )
    for node in part:
        node.nics = None if fewest is None else dict(fewest)
        if fewest is not None:
            node.host.leaves = node.host.leaves[: fewest["count"]]
        node.keys = {**part[0].keys}
    message = f"nodes of the NVLink domain {name} differ in interfaces or price; all are planned with the least of them"
    return Diagnostic("DOMAIN_MADE_ALIKE", message, "look for missing cables on its nodes", Severity.WARNING)

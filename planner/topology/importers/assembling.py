"""Complete nodes -> a topology document: alike nodes folded into groups, cables into oversubscription, broken GPUs into lists."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.diagnostics import Diagnostic, Severity
from planner.topology.host_lists import expand_hosts, fold_hosts
from planner.topology.importers.completing import Assumptions, Node, complete
from planner.topology.importers.domains import settle_domains
from planner.topology.importers.facts import Reading, note
from planner.topology.importers.joining import Joined
from planner.topology.importers.prices import PriceList
from planner.topology.importers.tier_labels import plain_name

_FABRICS = ("infiniband", "roce", "efa", "ethernet")


@dataclass(frozen=True)
class Assembled:
    """A document as plain data, the sources of each node group in words, and everything worth telling."""

    data: dict[str, Any]
    sources: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


def assemble(name: str, joined: Joined, readings: Sequence[Reading], assumptions: Assumptions, prices: PriceList | None) -> Assembled:
    """Put the document together.

    Raises
    ------
    PlannerError
        As `complete` does.
    """
    nodes, remarks = complete(joined.hosts, assumptions, prices)
    remarks += settle_domains(nodes)
    fabric = _fabric_kind(nodes, readings, assumptions)
    groups, sources = _groups(nodes, fabric)
    data: dict[str, Any] = {"name": name, "nodes": groups, "fabric": _fabric(fabric, groups, readings, remarks)}
    for state in ("taken", "failed"):
        entries = _states(nodes, state)
        if entries:
            data[state] = entries
    return Assembled(data, tuple(sources), (*joined.diagnostics, *remarks))


def _fabric_kind(nodes: Sequence[Node], readings: Sequence[Reading], assumptions: Assumptions) -> str:
    """Kind of the network: as asked, as a file tells, or as most interfaces have it."""
    if not any(node.nics for node in nodes):
        return "none"
    told = next((reading.fabric_kind for reading in readings if reading.fabric_kind is not None), None)
    most = Counter(node.nics["kind"] for node in nodes if node.nics and node.nics.get("kind") in _FABRICS).most_common(1)
    return assumptions.fabric or told or (str(most[0][0]) if most else "ethernet")


def _groups(nodes: Sequence[Node], fabric: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Node groups in the order their first node appears, with their sources."""
    several_islands = len({node.host.island for node in nodes if node.nics}) > 1
    found: dict[str, tuple[dict[str, Any], list[str], str]] = {}
    sources: dict[tuple[tuple[str, str], ...], str] = {}
    for node in nodes:
        host = node.host
        keys = dict(node.keys)
        price = keys.pop("price", None)
        domains = {
            plain_name(kind): plain_name(value) for kind, value in host.failure_domains.items() if plain_name(kind) and plain_name(value)
        }
        if node.nics is not None:
            keys["nics"] = {key: value for key, value in node.nics.items() if key != "kind" or value != fabric}
            if several_islands and host.island:
                keys["island"] = host.island
            for key, switches in (("leaf", host.leaves), ("spine", host.spines)):
                if switches and (key == "leaf" or host.leaves):
                    keys[key] = switches[0] if len(switches) == 1 else list(switches)
        elif host.leaves:
            # Without interfaces nothing crosses the switch, but nodes still fail with it.
            domains.setdefault("switch", plain_name(host.leaves[0]))
        if host.domain is not None:
            keys |= {"scale_up": "nvswitch", "nvlink_domain": host.domain}
        if price is not None:
            keys["price"] = price
        if domains:
            keys["failure_domains"] = domains
        origins = tuple(host.origins.items())
        source = sources.get(origins) or sources.setdefault(origins, _source(host.origins))
        entry = found.setdefault(json.dumps([keys, source], sort_keys=True), (keys, [], source))
        entry[1].append(host.name)
    return [{"name": fold(names), **keys} for keys, names, _ in found.values()], [source for _, _, source in found.values()]


def _source(origins: Mapping[str, str]) -> str:
    """Where a node's facts are from, in words: `gpu: nodes.json; nics: fabric.txt`."""
    words = {
        "gpu": "gpu",
        "gpus": "gpus",
        "scale_up": "wiring",
        "pcie": "pcie",
        "nic_count": "nics",
        "nic_speed": "speed",
        "leaves": "leaf",
        "domain": "domain",
        "price": "price",
    }
    by_origin: dict[str, list[str]] = {}
    for key, origin in origins.items():
        if key in words:
            by_origin.setdefault(origin, []).append(words[key])
    return "; ".join(f"{', '.join(keys)}: {origin}" for origin, keys in by_origin.items())


def fold(names: Sequence[str]) -> str:
    """Host list of the names, or the names by commas where folding would not give them back."""
    folded = fold_hosts(names)
    try:
        if set(expand_hosts(folded, len(names))) == set(names):
            return folded
    except ValueError:
        pass
    return ",".join(names)


def _fabric(kind: str, groups: Sequence[Mapping[str, Any]], readings: Sequence[Reading], remarks: list[Diagnostic]) -> dict[str, Any]:
    used: dict[str, None] = {}
    for group in groups:
        leaf = group.get("leaf", ())
        used.update(dict.fromkeys([leaf] if isinstance(leaf, str) else leaf))
    ratios: dict[str, str] = {}
    told = False
    for reading in readings:
        speeds = [port.speed for port in reading.ports if port.speed is not None]
        for leaf, (down, up) in reading.leaf_cables.items():
            told = told or up > 0
            if leaf in used and up > 0 and down > up * (1 + 1e-9):
                ratios[leaf] = _ratio(down, up, min(speeds) if len(speeds) == len(reading.ports) else 1.0)
    if len(used) > 1 and not told:
        file = readings[0].file if readings else ""
        message = "no file tells the leaves' uplinks; 1:1 (non-blocking) is taken"
        remarks.append(note("OVERSUBSCRIPTION_ASSUMED", message, "add the output of ibnetdiscover, or write oversubscription:", file))
    return {"kind": kind} | ({"leaf_oversubscription": dict(sorted(ratios.items()))} if ratios else {})


def _ratio(down: float, up: float, cable: float) -> str:
    """Ratio as cables, 18:15, where bandwidths are whole multiples of one; the document's largest ratio at most."""
    if (down / cable).is_integer() and (up / cable).is_integer() and down <= 1000 * up:
        return f"{down / cable:.0f}:{up / cable:.0f}"
    return f"{min(down / up, 1000.0):.6g}:1"


def _states(nodes: Sequence[Node], state: str) -> list[str]:
    """Entries of the lists `taken` and `failed`: whole nodes, and single GPUs of alike nodes together."""
    whole = [node.host.name for node in nodes if node.host.out_of_use == state]
    entries = [fold(whole)] if whole else []
    if state == "failed":
        single: dict[tuple[int, ...], list[str]] = {}
        for node in nodes:
            if node.failed and node.host.out_of_use != "failed":
                single.setdefault(node.failed, []).append(node.host.name)
        entries += [f"{fold(names)}:[{','.join(map(str, indices))}]" for indices, names in single.items()]
    return entries


def remarks_by_weight(diagnostics: Sequence[Diagnostic]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Notes (what was assumed) and warnings (what to check), each once."""
    unique = list(dict.fromkeys(diagnostics))
    return [item for item in unique if item.severity is Severity.NOTE], [item for item in unique if item.severity is Severity.WARNING]

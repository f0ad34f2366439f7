"""Switches, adapters and cables of an InfiniBand subnet -> leaves, spines and what every leaf can carry upwards.

A leaf is a switch with hosts on it; tiers above are counted from the leaves. Uplinks are counted cable by cable, so that a leaf that lost
some shows it. SHARP aggregation nodes and subnet managers are no hosts.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from planner.diagnostics import Diagnostic, Place
from planner.topology.importers.facts import HcaPort, Reading, note, several, shown, warning
from planner.topology.importers.lines import refusal

# Gb/s of one lane as NVIDIA's and the InfiniBand Trade Association's names count them; ports have 1, 2, 4, 8 or 12 lanes.
LANE_GIGABITS: Final = {
    "SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.0, "FDR": 14.0, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0, "XDR": 200.0,
}  # fmt: skip

# Addresses that an InfiniBand subnet gives to adapters and switches (unicast LIDs, InfiniBand Architecture Specification volume 1): no more devices than that.
MOST_DEVICES: Final = 0xBFFF
MOST_CABLES: Final = 150_000
LARGEST: Final = 16 * 2**20

_HOST: Final = re.compile(r"'?([A-Za-z0-9][A-Za-z0-9._-]{0,199})(?:\s+(?:HCA-\d+|[A-Za-z]+\d*_\w+|ib\w*\d+))?'?")
_NO_HOST: Final = re.compile(r"(?:localhost|ubuntu|centos|debian|linux|none|MT\d+)(?:\..*)?", re.IGNORECASE)
_SERVICE: Final = re.compile(r"aggregation node|\bufm\b|ufm[-_\d]|sharp", re.IGNORECASE)
# A switch whose hosts are so few among its cables, all to leaves, is a spine with a server of the operator's on it.
_SERVICE_SHARE: Final = 0.1

End = tuple[str, int]


@dataclass
class Device:
    """A switch or an adapter: what it calls itself, its GUIDs, and where it was first met."""

    switch: bool
    description: str
    guids: tuple[str, ...]
    line: int


@dataclass
class Subnet:
    """Devices by identity and cables between two ends; one-sided records of the same cable count once."""

    kind: str
    file: str
    devices: dict[str, Device] = field(default_factory=dict)
    cables: dict[frozenset[End], tuple[float | None, int]] = field(default_factory=dict)

    def device(self, identity: str, device: Device) -> None:
        """Note a device; what its own record says takes the place of what a cable's other end said."""
        known = self.devices.get(identity)
        if known is None:
            self.devices[identity] = device
            if len(self.devices) > MOST_DEVICES:
                message = f"has more devices than the {MOST_DEVICES:,} addresses of an InfiniBand subnet"
                raise refusal("TOO_MANY_VALUES", message, "give each subnet a file of its own", self.file, device.line)
        else:
            known.description = device.description or known.description
            known.guids = tuple(dict.fromkeys((*device.guids, *known.guids)))

    def cable(self, one: End, other: End, speed: float | None, line: int) -> None:
        """Note a cable between two ports, `speed` in one direction [B/s]."""
        if one != other:
            known = self.cables.setdefault(frozenset((one, other)), (speed, line))
            if known[0] is None and speed is not None:
                self.cables[frozenset((one, other))] = (speed, known[1])
            if len(self.cables) > MOST_CABLES:
                message = f"has more than {MOST_CABLES:,} cables"
                raise refusal("TOO_MANY_VALUES", message, "give each subnet a file of its own", self.file, line)


def speed_of(words: str) -> float | None:
    """Speed of a port written as 4xNDR, in one direction [B/s]; None where no such word is found."""
    found = re.search(r"\b(\d{1,2})x(FDR10|[SDQFEHNX]DR)\b", words)
    return None if found is None else int(found[1]) * LANE_GIGABITS[found[2]] * 1e9 / 8


def host_of(description: str) -> str | None:
    """Host an adapter names in its description ("node001 mlx5_0", "node001 HCA-1"); None for factory names and unnamed systems."""
    found = _HOST.fullmatch(description.strip())
    return None if found is None or _NO_HOST.fullmatch(found[1]) else found[1]


def switch_name(description: str, identity: str) -> str:
    """Name of a switch in host-list characters: `MF0;leaf-15:MQM9701/U1` is leaf-15, with its chip where that is not the first."""
    found = re.fullmatch(r"(?:MF\d+;)?([^:;]*)(?::[^/]*)?(?:/(?:.*/)?U(\d+))?", description)
    name = found[1] if found is not None else description
    plain = (
        re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:100] or re.sub(r"[^A-Za-z0-9._-]+", "-", identity).strip("-.")[:100] or "switch"
    )
    return plain if found is None or found[2] in {None, "1"} else f"{plain}-U{found[2]}"


class _Tiers:
    """Which switches are leaves, which lie above, and the cables between them."""

    def __init__(self, subnet: Subnet, diagnostics: list[Diagnostic]) -> None:
        self.subnet = subnet
        self.near: dict[str, Counter[str]] = {identity: Counter() for identity, found in subnet.devices.items() if found.switch}
        self.hosts: Counter[str] = Counter()
        self.width: dict[frozenset[str], float] = {}
        self.service = {identity for identity, found in subnet.devices.items() if not found.switch and _SERVICE.search(found.description)}
        self.told = all(speed is not None for speed, _ in subnet.cables.values())
        for ends, (speed, _) in subnet.cables.items():
            (one, _), (other, _) = ends
            carried = speed if self.told and speed is not None else 1.0
            if one in self.near and other in self.near:
                self.near[one][other] += 1
                self.near[other][one] += 1
                pair = frozenset((one, other))
                self.width[pair] = self.width.get(pair, 0.0) + carried
            elif one in self.near or other in self.near:
                switch, adapter = (one, other) if one in self.near else (other, one)
                if adapter not in self.service:
                    self.hosts[switch] += 1
        self.leaves = self._leaves(diagnostics)
        self.tier = self._tiers()

    def _leaves(self, diagnostics: list[Diagnostic]) -> list[str]:
        candidates = [identity for identity in self.near if self.hosts[identity]]
        found = []
        for identity in candidates:
            switches = sum(self.near[identity].values())
            lone = self.hosts[identity] < _SERVICE_SHARE * switches and all(self.hosts[other] for other in self.near[identity])
            if lone and len(candidates) > 2:
                message = f"{several(self.hosts[identity], 'adapter')} on the spine {self.subnet.devices[identity].description} left out"
                line = self.subnet.devices[identity].line
                diagnostics.append(
                    warning("HOSTS_ON_SPINE", message, "they are taken for the operator's own servers", self.subnet.file, line)
                )
            else:
                found.append(identity)
        return found

    def _tiers(self) -> dict[str, int]:
        tier = dict.fromkeys(self.leaves, 0)
        front = list(self.leaves)
        while front:
            reached = []
            for identity in front:
                for other in self.near[identity]:
                    if other not in tier:
                        tier[other] = tier[identity] + 1
                        reached.append(other)
            front = reached
        return tier

    def above(self, leaf: str) -> list[str]:
        """Switches one tier up; other leaves where there is no tier above."""
        return [other for other in self.near[leaf] if self.tier[other] == 1] or list(self.near[leaf])

    def islands(self) -> dict[str, int]:
        """Number of the connected part each switch is in."""
        found: dict[str, int] = {}
        for number, start in enumerate(self.near):
            if start in found:
                continue
            found[start] = number
            left = [start]
            while left:
                for other in self.near[left.pop()]:
                    if other not in found:
                        found[other] = number
                        left.append(other)
        return found


def _names(tiers: _Tiers) -> dict[str, str]:
    """Name of every switch, made unique by its identity where two call themselves alike."""
    wanted = {identity: switch_name(tiers.subnet.devices[identity].description, identity) for identity in tiers.near}
    often = Counter(wanted.values())
    return {
        identity: name if often[name] == 1 else f"{name}-{re.sub(r'[^A-Za-z0-9]+', '', identity)[-12:]}"
        for identity, name in wanted.items()
    }


def reading_of(subnet: Subnet) -> Reading:
    """What the cables of a subnet say.

    Raises
    ------
    PlannerError
        NO_CABLES where no adapter is joined to a switch.
    """
    diagnostics: list[Diagnostic] = []
    tiers = _Tiers(subnet, diagnostics)
    if not tiers.leaves:
        message = f"holds {several(len(subnet.devices), 'device')} and no cable between a host and a switch"
        raise refusal("NO_CABLES", message, "save the output of the whole fabric, from a host with access to it", subnet.file)
    names = _names(tiers)
    leaves = set(tiers.leaves)
    ports: list[HcaPort] = []
    down: dict[str, float] = {}
    for ends, (speed, line) in subnet.cables.items():
        (one, _), (other, _) = ends
        leaf, adapter = (one, other) if one in leaves else (other, one)
        device = subnet.devices[adapter]
        if leaf in leaves and not device.switch and adapter not in tiers.service:
            down[leaf] = down.get(leaf, 0.0) + (speed if tiers.told and speed is not None else 1.0)
            ports.append(HcaPort(host_of(device.description), device.guids, names[leaf], speed, Place(subnet.file, line)))
    cables = {
        names[leaf]: (down.get(leaf, 0.0), sum(tiers.width[frozenset((leaf, other))] for other in tiers.above(leaf)))
        for leaf in tiers.leaves
    }
    spines = {names[leaf]: tuple(sorted(names[other] for other in tiers.near[leaf] if tiers.tier[other] == 1)) for leaf in tiers.leaves}
    part = tiers.islands()
    split = len({part[leaf] for leaf in tiers.leaves}) > 1
    first = {part[leaf]: names[leaf] for leaf in reversed(tiers.leaves)}
    islands = {names[leaf]: f"island-{first[part[leaf]]}" for leaf in tiers.leaves} if split else {}
    diagnostics.extend(_remarks(tiers, names, islands))
    return Reading(
        subnet.kind,
        subnet.file,
        ports=tuple(ports),
        spines_of_leaf=spines,
        leaf_cables=cables,
        island_of_leaf=islands,
        fabric_kind="infiniband",
        learnt=(_summary(tiers, ports),),
        diagnostics=tuple(diagnostics),
    )


def _summary(tiers: _Tiers, ports: list[HcaPort]) -> str:
    spines = sum(tier == 1 for tier in tiers.tier.values())
    above = sum(tier > 1 for tier in tiers.tier.values())
    hosts = {port.host for port in ports if port.host is not None}
    uplinks = [sum(tiers.near[leaf][other] for other in tiers.above(leaf)) for leaf in tiers.leaves]
    on_leaf = [tiers.hosts[leaf] for leaf in tiers.leaves]
    return (
        f"{several(len(tiers.leaves), 'leaf', 'leaves')}, {several(spines, 'spine')}"
        + (f", {several(above, 'switch', 'switches')} above" if above else "")
        + f"; {several(len(ports), 'port')} of {several(len(hosts), 'named host')}; {_range(on_leaf)} ports to hosts and {_range(uplinks)} uplinks a leaf"
    )


def _range(values: list[int]) -> str:
    return f"{min(values)}" if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _remarks(tiers: _Tiers, names: dict[str, str], islands: dict[str, str]) -> list[Diagnostic]:
    file = tiers.subnet.file
    found: list[Diagnostic] = []
    if tiers.service:
        message = f"{several(len(tiers.service), 'adapter')} of SHARP aggregation nodes and fabric managers left out"
        found.append(note("SERVICE_ADAPTERS", message, "they carry no GPU's traffic", file))
    uplinks = {names[leaf]: sum(tiers.near[leaf][other] for other in tiers.above(leaf)) for leaf in tiers.leaves}
    usual = Counter(uplinks.values()).most_common(1)[0][0]
    fewer = {leaf: count for leaf, count in sorted(uplinks.items()) if count < usual}
    if fewer:
        listed = shown([f"{leaf} {count}" for leaf, count in fewer.items()], 8)
        message = f"{several(len(fewer), 'leaf has', 'leaves have')} fewer than the usual {usual} uplinks: {listed}"
        found.append(warning("LEAF_UPLINKS_MISSING", message, "look for missing or broken cables", file))
    if islands:
        parts = len(set(islands.values()))
        found.append(
            warning("FABRIC_SPLIT", f"the fabric falls into {parts} parts that no cable joins", "check the cables between them", file)
        )
    if not tiers.told:
        found.append(note("NIC_SPEED_NOT_TOLD", "the cables' speed is not in the file", "give --nics SPEED, 400Gb/s for example", file))
    return found

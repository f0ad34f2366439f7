"""Joined hosts -> node settings: GPU type, count, wiring, interfaces and price of each, what is missing filled in from options and public tables.

Whatever is filled in is told, with where it comes from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.catalog.gpus import Gpu
from planner.catalog.gpus import gpu as gpu_named
from planner.catalog.hardware_names import instance as instance_named
from planner.diagnostics import Diagnostic, PlannerError, Severity
from planner.topology.importers.facts import NicFacts, shown
from planner.topology.importers.hosts import Host
from planner.topology.importers.prices import PriceList
from planner.topology.importers.scale_up_keys import ScaleUpKeys, scale_up_keys

# GPUs of one node where nobody counts them, by how many one scale-up domain joins: boards of eight or four, and trays of four in a rack.
_BOARDS = {8: 8, 4: 4, 72: 4}


@dataclass(frozen=True)
class Assumptions:
    """What the caller says of nodes whose files do not: GPU type, count, interfaces, kind of network."""

    gpu: Gpu | None = None
    gpus: int | None = None
    nics: NicFacts | None = None
    fabric: str | None = None


@dataclass
class Node:
    """One host, complete: `keys` are those of a node group without name, switches and domain; `origins` names sources in words."""

    host: Host
    gpu: Gpu
    gpus: int
    keys: dict[str, Any]
    nics: dict[str, Any] | None
    failed: tuple[int, ...]
    origins: dict[str, str] = field(default_factory=dict)


class Completer:
    """Completes hosts one by one and gathers what was assumed, each assumption once for all hosts it was made for."""

    def __init__(self, assumptions: Assumptions, prices: PriceList | None) -> None:
        self.assumptions = assumptions
        self.prices = prices
        self.diagnostics: list[Diagnostic] = []
        self._assumed: dict[tuple[str, str, str, Severity], list[str]] = {}
        self._wirings: dict[tuple[int, str], ScaleUpKeys] = {}

    def assume(self, code: str, host: Host, message: str, hint: str, severity: Severity = Severity.NOTE) -> None:
        """Record an assumption made for a host."""
        self._assumed.setdefault((code, message, hint, severity), []).append(host.name)

    def remarks(self) -> list[Diagnostic]:
        """Everything assumed and found odd."""
        made = [
            Diagnostic(code, f"{shown(names, 4)}: {message}", hint, severity)
            for (code, message, hint, severity), names in self._assumed.items()
        ]
        return [*self.diagnostics, *made]

    def node(self, host: Host) -> Node | None:
        """Complete one host; None where its GPU type or count is told nowhere."""
        known = instance_named(host.instance) if host.instance is not None else None
        if known is not None:
            origin = f"instance type {known.name}"
            if host.gpu is None and known.gpu:
                host.take("gpu", known.gpu, origin)
                self.assume(
                    "FROM_INSTANCE_TYPE", host, f"{known.gpus} x {known.gpu} by the instance type {known.name}", f"source: {known.source}"
                )
            host.take("gpus", known.gpus, origin)
            host.take_nics(NicFacts(known.nic_count, known.nic_speed, known.nic_kind), origin)
        gpu = self._gpu(host)
        gpus = self._gpus(host, gpu) if gpu is not None else None
        if gpu is None or gpus is None:
            return None
        host.take_nics(self.assumptions.nics, "--nics")
        wiring = self._wiring(host, gpu, gpus)
        keys: dict[str, Any] = {"gpu": gpu.name, "gpus": gpus, **wiring.keys}
        if host.pcie is not None and host.pcie != gpu.pcie:
            keys["pcie"] = host.pcie
        self._price(host, gpu, gpus, keys)
        failed = tuple(sorted({index for index in (*host.failed, *wiring.off) if index < gpus}))
        return Node(host, gpu, gpus, keys, self._nics(host), failed, dict(host.origins))

    def _gpu(self, host: Host) -> Gpu | None:
        asked = self.assumptions.gpu
        if host.gpu is not None:
            found = gpu_named(host.gpu)
            if asked is not None and asked.name != found.name:
                message = f"--gpu {asked.name} is not used: {host.origins.get('gpu', 'a file')} tells {found.name}"
                self.assume("GPU_OPTION_NOT_USED", host, message, "leave --gpu out, or correct the file", Severity.WARNING)
            return found
        if asked is not None:
            host.take("gpu", asked.name, "--gpu")
            return asked
        what = f"`{host.product}` is no GPU of the catalog" if host.product is not None else "no file tells the GPU type"
        self.assume("GPU_MODEL_UNKNOWN", host, f"{what}; left out", "give --gpu (planner catalog gpus lists the names)", Severity.WARNING)
        return None

    def _gpus(self, host: Host, gpu: Gpu) -> int | None:
        if host.gpus is not None:
            return host.gpus
        if self.assumptions.gpus is not None:
            host.take("gpus", self.assumptions.gpus, "--gpus")
            return self.assumptions.gpus
        usual = _BOARDS.get(gpu.scale_up_domain)
        if usual is None:
            message = f"no file tells how many {gpu.name} a node has; left out"
            self.assume("GPU_COUNT_UNKNOWN", host, message, "give --gpus", Severity.WARNING)
            return None
        host.take("gpus", usual, f"usual board of {gpu.name}")
        self.assume("GPU_COUNT_ASSUMED", host, f"{usual} GPUs a node, the usual board of {gpu.name}", "give --gpus")
        return usual

    def _wiring(self, host: Host, gpu: Gpu, gpus: int) -> ScaleUpKeys:
        links, picture = host.scale_up, host.picture
        if links is None or picture is None:
            return ScaleUpKeys()
        if links.gpus != gpus:
            origin = host.origins.get("scale_up", "a file")
            message = f"{origin} shows {links.gpus} of {gpus} GPUs; the usual wiring of {gpu.name} is taken"
            self.assume("PICTURE_PARTIAL", host, message, "run the command outside of containers", Severity.WARNING)
            return ScaleUpKeys()
        key = (id(picture), gpu.name)
        if key not in self._wirings:
            self._wirings[key] = scale_up_keys(links, gpu, picture.place)
            self.diagnostics.extend(self._wirings[key].diagnostics)
        return self._wirings[key]

    def _nics(self, host: Host) -> dict[str, Any] | None:
        """Interfaces of a host; without a count or a speed it has none a plan could use."""
        count, speed = host.nic_count, host.nic_speed
        if count is None or speed is None:
            missing = "how many interfaces the node has" if count is None else "how fast the node's interfaces are"
            hint = "give --nics, 8x400Gb/s for example" if count is None else "give --nics, 400Gb/s for example"
            self.assume("NICS_UNKNOWN", host, f"no file tells {missing}; it is planned as an island", hint, Severity.WARNING)
            return None
        found: dict[str, Any] = {"count": max(count, len(host.leaves)), "speed": gigabits(speed)}
        kind = self.assumptions.fabric or host.nic_kind
        return found | ({"kind": kind} if kind is not None else {})

    def _price(self, host: Host, gpu: Gpu, gpus: int, keys: dict[str, Any]) -> None:
        if self.prices is None:
            return
        offer = self.prices.of_node(host.instance, gpu.name, gpus)
        if offer is None:
            message = f"{self.prices.file} has no row for {gpus} x {gpu.name}"
            self.assume("PRICE_NOT_LISTED", host, message, "add a row, or write price: in the topology", Severity.WARNING)
            return
        keys["price"] = f"${offer[0].price:g}/h"
        host.origins["price"] = f"{self.prices.file} {offer[1]}"


def gigabits(speed: float) -> str:
    """Speed as 400Gb/s, exactly."""
    value = speed * 8 / 1e9
    return f"{value:g}Gb/s" if float(f"{value:g}") == value else f"{value!r}Gb/s"


def complete(hosts: Iterable[Host], assumptions: Assumptions, prices: PriceList | None) -> tuple[list[Node], list[Diagnostic]]:
    """Complete all hosts.

    Raises
    ------
    PlannerError
        GPU_CONTRADICTS_FILE where the GPU type cannot be wired as shown; GPU_MODEL_UNKNOWN or GPU_COUNT_UNKNOWN where no host is complete.
    """
    completer = Completer(assumptions, prices)
    nodes = [node for host in hosts if (node := completer.node(host)) is not None]
    remarks = completer.remarks()
    if any(remark.severity is Severity.ERROR for remark in remarks):
        raise PlannerError(remark for remark in remarks if remark.severity is not Severity.NOTE)
    if not nodes:
        reasons = [remark for remark in remarks if remark.code in {"GPU_MODEL_UNKNOWN", "GPU_COUNT_UNKNOWN"}]
        raise PlannerError(Diagnostic(reason.code, reason.message, reason.hint) for reason in reasons)
    return nodes, remarks


def alike(nodes: Sequence[Node]) -> bool:
    """Tell whether nodes may share an NVLink domain: same GPUs, wiring, interfaces and price."""
    return len({json.dumps([node.keys, node.nics], sort_keys=True) for node in nodes}) == 1

"""Names -> things: every group of a document with its hosts expanded and its GPU, links and price looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from planner.catalog.gpus import Gpu
from planner.catalog.gpus import gpu as gpu_named
from planner.catalog.links import Link, nic_link
from planner.catalog.links import link as link_named
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.topology.document import TopologyDocument
from planner.topology.groups import HostGroup, NicSet, Price
from planner.topology.host_lists import HostListError, expand_hosts
from planner.topology.node_groups import MOST_NODES, NodeGroup
from planner.topology.sources import Sources, gather
from planner.topology.together import check_together
from planner.topology.wiring import HostWiring, usual_scale_up, wire
from planner.topology.wiring_checks import check_wiring

Found = TypeVar("Found")

# The leaf and the spine of a network whose leaves, or spines, nobody named.
UNNAMED_LEAF = "leaf"
UNNAMED_SPINE = "spine"

# A file may name every node by itself; what it says is mostly the same.
_wire = lru_cache(maxsize=1024)(wire)
_nic_link = lru_cache(maxsize=1024)(nic_link)


def at(path: str, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Give diagnostics the document path they belong to."""
    return [replace(diagnostic, place=Place(path=path)) for diagnostic in diagnostics]


def _unnamed(switch: str, group: NodeGroup) -> str:
    """Name of the switch nobody named: one for each island."""
    return switch if group.island is None else f"{switch}-{group.island}"


class Resolver:
    """Turns node groups into host groups and gathers everything that is wrong on the way."""

    def __init__(self, sources: Sources, currency: str) -> None:
        self.sources = sources
        self.currency = currency
        self.diagnostics: list[Diagnostic] = list(sources.diagnostics)
        self._first_place: dict[str, str] = {}
        self.names_leaf = any(group.leaf for _, group in sources.groups)
        self._names_spine = any(group.spine for _, group in sources.groups)

    def fault(self, code: str, path: str, message: str, hint: str) -> None:
        """Record one error at a place of the document."""
        self.diagnostics.append(Diagnostic(code, message, hint, place=Place(path=path)))

    def _look_up(self, path: str, find: Callable[[], Found]) -> Found | None:
        try:
            return find()
        except PlannerError as error:
            self.diagnostics.extend(at(path, error.diagnostics))
            return None

    def group(self, group: NodeGroup, path: str) -> HostGroup | None:
        """Resolve one group; None where a name in it could not be found (every fault is recorded)."""
        names = self._hosts(group.name, f"{path}.name")
        gpu = self._look_up(f"{path}.gpu", lambda: gpu_named(group.gpu))
        wiring = self._wiring(group, gpu, path) if gpu is not None else None
        nics = self._nics(group, path)
        domains = self._failure_domains(group, names, path)
        price = self._price(group, gpu, path)
        leaves = self._leaves(group, path)
        if gpu is None or wiring is None or not names:
            return None
        spines = group.spine or ((_unnamed(UNNAMED_SPINE, group),) if not self._names_spine else ())
        if not leaves:
            spines = ()
        return HostGroup(path, names, gpu, wiring, nics, leaves, spines, group.nvlink_domain, price, domains, group.island)

    def _hosts(self, text: str, path: str) -> tuple[str, ...]:
        try:
            names = expand_hosts(text, MOST_NODES - len(self._first_place))
        except HostListError as error:
            self.fault(error.code, path, error.message, error.hint)
            return ()
        repeated = [name for name in names if self._first_place.setdefault(name, path) != path]
        if repeated:
            more = f" and {len(repeated) - 1} more nodes are" if len(repeated) > 1 else " is"
            message = f"node {repeated[0]}{more} already described by {self._first_place[repeated[0]]}"
            self.fault("DUPLICATE_NODE", path, message, "name every node once")
        return names

    def _wiring(self, group: NodeGroup, gpu: Gpu, path: str) -> HostWiring | None:
        scale_up = group.scale_up or usual_scale_up(gpu, group.gpus, group.pairs, meshed=group.nvlinks is not None)
        pcie = self._look_up(f"{path}.pcie", lambda: link_named(group.pcie or gpu.pcie))
        link: Link | None = None
        name = group.scale_up_link or gpu.scale_up
        if name is not None and scale_up != "none":
            link = self._look_up(f"{path}.scale_up_link", lambda: link_named(name))
            if link is None:
                return None
        faults = check_wiring(group, gpu, scale_up, link, pcie, path)
        self.diagnostics.extend(faults)
        if faults or pcie is None:
            return None
        return _wire(scale_up, group.gpus, link, pcie, group.pairs, group.nvlinks)

    def _nics(self, group: NodeGroup, path: str) -> NicSet | None:
        nics, fabric = group.nics, self.sources.fabric
        if nics is None or fabric.kind == "none":
            return None
        kind = nics.kind or fabric.kind
        link = self._look_up(f"{path}.nics", lambda: _nic_link(kind, nics.speed))
        return NicSet(nics.count, link, nics.speed) if link is not None else None

    def _leaves(self, group: NodeGroup, path: str) -> tuple[str, ...]:
        if group.nics is None or self.sources.fabric.kind == "none":
            if group.leaf is not None:
                missing = "it has no nics" if group.nics is None else "the fabric is of kind none"
                hint = (
                    "write nics: {count: 8, speed: 400Gb/s}"
                    if group.nics is None
                    else "write fabric: {kind: infiniband} or leave the leaf out"
                )
                self.fault("NICS_MISSING", f"{path}.leaf", f"{group.name} hangs on a leaf, but {missing}", hint)
            return ()
        if group.spine is not None and group.leaf is None:
            self.fault(
                "LEAF_MISSING", f"{path}.spine", f"{group.name} has a spine but no leaf", "write leaf: with the name of its leaf switch"
            )
        leaves = group.leaf or ((_unnamed(UNNAMED_LEAF, group),) if not self.names_leaf else ())
        if len(leaves) > group.nics.count:
            message = f"{group.name} hangs on {len(leaves)} leaves with {group.nics.count} network interfaces"
            self.fault("LEAVES_EXCEED_NICS", f"{path}.leaf", message, "write at most one leaf per interface")
        if len(set(leaves)) < len(leaves):
            self.fault("DUPLICATE_LEAF", f"{path}.leaf", f"{group.name} names a leaf twice", "write every leaf once")
        return leaves

    def _failure_domains(self, group: NodeGroup, names: tuple[str, ...], path: str) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for kind, text in group.failure_domains.items():
            place = f"{path}.failure_domains.{kind}"
            if kind in {"node", "gpu"}:
                self.fault(
                    "FAILURE_DOMAIN_RESERVED", place, f"{kind} is a failure domain of every cluster", "choose another name, such as rack"
                )
                continue
            try:
                domains = expand_hosts(text, MOST_NODES)
            except HostListError as error:
                self.fault(error.code, place, error.message, error.hint)
                continue
            if names and len(domains) not in {1, len(names)}:
                message = f"{len(domains)} names of {kind} for {len(names)} nodes"
                self.fault("FAILURE_DOMAINS_NOT_PER_NODE", place, message, "write one name, or one per node")
                continue
            found[kind] = domains
        return found

    def _price(self, group: NodeGroup, gpu: Gpu | None, path: str) -> Price:
        per_node, per_gpu = group.price, group.gpu_price
        for key, currency in group.currencies.items():
            if currency != self.currency:
                message = f"{group.name} is priced in {currency}, and the topology counts in {self.currency}"
                self.fault("CURRENCY_MIXED", f"{path}.{key}", message, f"write the price in {self.currency}, or currency: {currency}")
        if per_node is not None and per_gpu is not None and abs(per_node - per_gpu * group.gpus) > 1e-6 * per_node:
            message = f"{group.name} costs {per_node:g} per node, but {group.gpus} GPUs at {per_gpu:g} are {per_gpu * group.gpus:g}"
            self.fault("PRICE_CONTRADICTS", f"{path}.gpu_price", message, "write price or gpu_price, not both")
        if per_node is None and per_gpu is not None:
            per_node = per_gpu * group.gpus
        if per_node is not None:
            return Price(per_node / group.gpus, per_node, "topology", group.billing)
        example = gpu.price if gpu is not None and self.currency == "USD" else None
        if example is None:
            return Price(None, None, "", group.billing)
        source = f"catalog example: {example.provider} {example.instance}, {example.terms}, {example.date}"
        return Price(example.per_gpu_hour, example.per_gpu_hour * group.gpus, source, group.billing)


def resolve(document: TopologyDocument) -> tuple[tuple[HostGroup, ...], Sources, list[Diagnostic]]:
    """Resolve all groups of a document; the diagnostics hold every fault found on the way."""
    sources = gather(document)
    resolver = Resolver(sources, document.currency)
    groups = [resolver.group(group, path) for path, group in sources.groups]
    if not sources.groups and not sources.diagnostics:
        resolver.fault("NO_NODES", "nodes", "the topology has no nodes", "write nodes: with at least one group, or build: or graph:")
    found = tuple(group for group in groups if group is not None)
    return found, sources, [*resolver.diagnostics, *check_together(found, sources, resolver.names_leaf)]

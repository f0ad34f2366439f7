"""Explicit graph -> node groups: one group a host, its switches and direct links taken from the edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from planner.catalog.gpus import gpu as gpu_named
from planner.catalog.links import Link
from planner.catalog.links import link as link_named
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.topology.levels import Components
from planner.topology.node_groups import NodeGroup
from planner.topology.node_link import Edge, HostVertex, NodeLinkGraph, Vertex
from planner.topology.wiring import links_per_gpu

# Edges that say nothing beyond what their ends already do: the way of a GPU to its host, and everything that meets in the core.
_SILENT = ({"gpu", "host"}, {"host", "core"}, {"leaf", "core"}, {"spine", "core"})


@dataclass
class GraphReading:
    """What a graph says, in the terms of a document: groups with their paths, leaf oversubscription, taken and failed GPUs with their paths."""

    groups: list[tuple[str, NodeGroup]] = field(default_factory=list)
    leaf_oversubscription: dict[str, float] = field(default_factory=dict)
    taken: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


@dataclass
class _Host:
    """A host vertex with what its edges add."""

    number: int
    vertex: Vertex
    leaves: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    direct: list[tuple[int, int, Edge]] = field(default_factory=list)
    gpu_indices: list[int] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"graph.nodes.{self.number}"


class _Reader:
    def __init__(self, graph: NodeLinkGraph) -> None:
        self.graph = graph
        self.reading = GraphReading()
        self.vertices: dict[str, Vertex] = {}
        self.hosts: dict[str, _Host] = {}
        self.gpus: dict[str, tuple[str, int]] = {}
        self.spines: dict[str, list[str]] = {}
        self.down: dict[str, list[float | None]] = {}
        self.up: dict[str, list[float | None]] = {}

    def fault(self, code: str, path: str, message: str, hint: str) -> None:
        self.reading.diagnostics.append(Diagnostic(code, message, hint, place=Place(path=path)))

    def read(self) -> GraphReading:
        self._read_vertices()
        seen: set[tuple[str, str]] = set()
        for number, edge in enumerate(self.graph.edges):
            if self.graph.directed and (edge.target, edge.source) in seen:
                continue  # the way back of a link already read
            seen.add((edge.source, edge.target))
            self._read_edge(f"graph.edges.{number}", edge)
        domains = self._domains()
        for identity, host in self.hosts.items():
            group = self._group(host, domains.get(identity))
            if group is not None:
                self.reading.groups.append((host.path, group))
        for leaf, offered in self.down.items():
            uplinks = self.up.get(leaf, [])
            if uplinks and all(offered) and all(uplinks):
                self.reading.leaf_oversubscription[self.vertices[leaf].label] = max(
                    1.0, sum(filter(None, offered)) / sum(filter(None, uplinks))
                )
        return self.reading

    def _read_vertices(self) -> None:
        for number, vertex in enumerate(self.graph.nodes):
            if vertex.id in self.vertices:
                self.fault(
                    "GRAPH_DUPLICATE_VERTEX", f"graph.nodes.{number}.id", f"{vertex.id} is already a vertex", "give every vertex its own id"
                )
                continue
            self.vertices[vertex.id] = vertex
            if vertex.kind == "host":
                self.hosts[vertex.id] = _Host(number, vertex)
        by_label = {host.vertex.label: identity for identity, host in self.hosts.items()}
        for number, vertex in enumerate(self.graph.nodes):
            if vertex.kind != "gpu":
                continue
            host = self.hosts.get(by_label.get(vertex.host or "", vertex.host or ""))
            if host is None or vertex.index is None:
                hint = "write host: with the name of a host vertex, and index: from 0"
                self.fault("GRAPH_GPU_WITHOUT_HOST", f"graph.nodes.{number}", f"GPU {vertex.id} does not say where it is", hint)
                continue
            host.gpu_indices.append(vertex.index)
            self.gpus[vertex.id] = (host.vertex.id, vertex.index)
            if vertex.state != "free":
                entries = self.reading.taken if vertex.state == "taken" else self.reading.failed
                entries.append((f"graph.nodes.{number}.state", f"{host.vertex.label}:{vertex.index}"))

    def _read_edge(self, path: str, edge: Edge) -> None:
        ends = [self.vertices.get(edge.source), self.vertices.get(edge.target)]
        for name, vertex in zip((edge.source, edge.target), ends, strict=True):
            if vertex is None:
                self.fault("GRAPH_UNKNOWN_VERTEX", path, f"{name} is not a vertex of the graph", "add it to the nodes, with its kind")
        found = [vertex for vertex in ends if vertex is not None]
        if len(found) < len(ends):
            return
        one, other = sorted(found, key=lambda vertex: ("gpu", "host", "nvswitch", "leaf", "spine", "core").index(vertex.kind))
        match (one.kind, other.kind):
            case ("host", "leaf"):
                self.hosts[one.id].leaves.append(other.id)
                self.down.setdefault(other.id, []).append(edge.bandwidth)
            case ("leaf", "spine"):
                self.spines.setdefault(one.id, []).append(other.id)
                self.up.setdefault(one.id, []).append(edge.bandwidth)
            case ("host", "nvswitch"):
                self.hosts[one.id].switches.append(other.id)
            case ("gpu", "nvswitch") if one.id in self.gpus:
                self.hosts[self.gpus[one.id][0]].switches.append(other.id)
            case ("gpu", "gpu") if one.id in self.gpus and other.id in self.gpus and self.gpus[one.id][0] == self.gpus[other.id][0]:
                host, first = self.gpus[one.id]
                self.hosts[host].direct.append((first, self.gpus[other.id][1], edge))
            case ("leaf", "core"):
                self.up.setdefault(one.id, []).append(edge.bandwidth)
            case kinds if set(kinds) in _SILENT or (kinds[0] == "gpu" and not {one.id, other.id} & set(self.gpus)):
                pass
            case _:
                message = f"a link between {one.id} ({one.kind}) and {other.id} ({other.kind}) has no meaning here"
                self.fault(
                    "GRAPH_EDGE_NOT_UNDERSTOOD", path, message, "link gpu - nvswitch, gpu - gpu of a host, host - leaf - spine - core"
                )

    def _domains(self) -> dict[str, str]:
        """Name of the NVLink domain of each host whose switches join several hosts."""
        order = [identity for identity, host in self.hosts.items() if host.switches]
        number = {
            identity: place for place, identity in enumerate([*order, *dict.fromkeys(s for h in self.hosts.values() for s in h.switches)])
        }
        components = Components(len(number))
        for identity in order:
            components.join_all([number[identity], *(number[switch] for switch in self.hosts[identity].switches)])
        members: dict[int, list[str]] = {}
        for identity in order:
            members.setdefault(components.find(number[identity]), []).append(identity)
        return {
            identity: self.vertices[self.hosts[joined[0]].switches[0]].label
            for joined in members.values()
            if len(joined) > 1
            for identity in joined
        }

    def _group(self, host: _Host, domain: str | None) -> NodeGroup | None:
        keys: dict[str, Any] = dict(host.vertex.__pydantic_extra__ or {})
        try:
            settings = HostVertex.model_validate(keys)
        except ValidationError as error:
            for item in error.errors(include_url=False):
                place = ".".join(map(str, (host.path, *item["loc"])))
                self.fault("GRAPH_HOST_INVALID", place, f"{host.vertex.id}: {item['msg']}", "a host takes the keys of a node group")
            return None
        for state, entries in (("taken", self.reading.taken), ("failed", self.reading.failed)):
            indices = getattr(settings, state)
            entries.extend((f"{host.path}.{state}.{place}", f"{host.vertex.label}:{index}") for place, index in enumerate(indices))
        leaves = dict.fromkeys(self.vertices[leaf].label for leaf in host.leaves)
        spines = dict.fromkeys(self.vertices[spine].label for leaf in host.leaves for spine in self.spines.get(leaf, ()))
        known = settings.model_dump(exclude={"taken", "failed"}, exclude_unset=True) | {"nics": settings.nics}
        known["gpus"] = settings.gpus or max(host.gpu_indices, default=-1) + 1
        if not known["gpus"]:
            self.fault(
                "GRAPH_HOST_INVALID", f"{host.path}.gpus", f"host {host.vertex.id} has no GPUs", "write gpus: or add its GPU vertices"
            )
            return None
        if settings.scale_up is None:
            known |= _scale_up_of_edges(settings, host)
        return NodeGroup.model_construct(
            **{key: field.get_default(call_default_factory=True, validated_data={}) for key, field in NodeGroup.model_fields.items()}
            | known
            | {"name": host.vertex.label, "nvlink_domain": domain, "leaf": tuple(leaves) or None, "spine": tuple(spines) or None}
        ).priced_in(settings.currencies)


def _scale_up_of_edges(settings: HostVertex, host: _Host) -> dict[str, Any]:
    """Scale-up wiring that the edges between a host's GPUs show, in the keys of a node group."""
    if host.switches:
        return {"scale_up": "nvswitch"}
    if not host.direct:
        return {}
    try:
        link: Link | None = link_named(settings.scale_up_link or gpu_named(settings.gpu).scale_up or "")
    except PlannerError:
        link = None  # reported with the group's own keys
    if link is not None and link.kind == "xgmi":
        return {"scale_up": "xgmi"}
    single = link.bandwidth.value / links_per_gpu(link) if link is not None else 1.0
    counted: dict[tuple[int, int], float] = {}
    for one, other, edge in host.direct:
        links = edge.links or (edge.bandwidth / single if edge.bandwidth is not None and link is not None else 1.0)
        # Parallel edges of a multigraph are the single links of a bonded one.
        counted[min(one, other), max(one, other)] = counted.get((min(one, other), max(one, other)), 0.0) + links
    return {"scale_up": "nvlink-mesh", "nvlinks": tuple((one, other, links) for (one, other), links in counted.items())}


def read_graph(graph: NodeLinkGraph) -> GraphReading:
    """Read an explicit graph; the diagnostics hold every fault of it."""
    return _Reader(graph).read()

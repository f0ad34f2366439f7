"""The fabric as networkx graphs: hosts and switches, or down to the GPU.

Vertices are named by kind: `host/h100-01`, `gpu/h100-01/3`, `nvswitch/rack-1`, `leaf/leaf-1`, `spine/spine-1`, `core` (`core/east` for the island east).
Each edge carries `level` (the level it first serves), `link` (catalog name), `kind`, `alpha` [s], `beta` [s/B] and `bandwidth` [B/s, one direction]. The
components of the subgraph of edges up to a level are the sets of GPUs joined at that level; the columns of the inventory hold the same
components, computed once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from planner.catalog.links import Link
from planner.topology.groups import HostGroup
from planner.topology.inventory import FAILED, STATES, TAKEN
from planner.topology.levels import LEVELS
from planner.topology.pools import leaf_ratio
from planner.topology.wiring import links_per_gpu

if TYPE_CHECKING:
    from planner.topology.fabric import Fabric

CORE = "core"


def _edge(graph: nx.Graph, one: str, other: str, level: str, link: Link, bandwidth: float) -> None:
    graph.add_edge(
        one,
        other,
        level=level,
        link=link.name,
        kind=link.kind,
        alpha=link.hockney_alpha.value,
        beta=1.0 / bandwidth,
        bandwidth=bandwidth,
    )


def host_graph(fabric: Fabric) -> nx.Graph:
    """Graph of hosts, domains of several hosts, leaves, spines and the core.

    A host's interfaces are spread evenly over its leaves. A leaf's uplinks carry what its hosts can offer over its oversubscription, spread
    evenly over its spines.
    """
    inventory = fabric.inventory
    graph = nx.Graph(name=fabric.name)
    first_row = inventory.group.searchsorted(range(len(inventory.groups)))
    for row, name in enumerate(inventory.names):
        group = inventory.groups[int(inventory.group[row])]
        place = row - int(first_row[int(inventory.group[row])])
        start, end = int(inventory.first_gpu[row]), int(inventory.first_gpu[row + 1])
        graph.add_node(f"host/{name}", kind="host", name=name, **host_keys(group, place, inventory.state[start:end]))
        _attach(graph, f"host/{name}", group)
    _raise_switches(graph, fabric)
    return graph


def host_keys(group: HostGroup, place: int, state: NDArray[np.int8]) -> dict[str, Any]:
    """Keys of a host vertex, enough to read the graph back: those of a node group besides what the edges say.

    `place` is the node's place in its group, `state` that of its GPUs.
    """
    wiring = group.wiring
    keys: dict[str, Any] = {"gpu": group.gpu.name, "gpus": wiring.gpus, "scale_up": wiring.scale_up, "pcie": wiring.pcie.name}
    if wiring.link is not None:
        keys["scale_up_link"] = wiring.link.name
        single = wiring.link.bandwidth.value / links_per_gpu(wiring.link)
        if wiring.scale_up == "nvlink-pairs":
            keys["pairs"] = [list(members) for members in wiring.groups]
        elif wiring.scale_up == "nvlink-mesh" and wiring.direct:
            keys["nvlinks"] = [[first, second, bandwidth / single] for first, second, bandwidth in wiring.direct]
    if group.nics is not None:
        keys["nics"] = {"count": group.nics.count, "speed": f"{group.nics.speed / 1e9!r}GB/s", "kind": group.nics.link.kind}
    if group.price.source == "topology":
        keys["price"] = group.price.per_node
    if group.price.billing != "gpu":
        keys["billing"] = group.price.billing
    if group.island is not None:
        keys["island"] = group.island
    if group.failure_domains:
        keys["failure_domains"] = {kind: names[place if len(names) > 1 else 0] for kind, names in group.failure_domains.items()}
    for name, value in (("taken", TAKEN), ("failed", FAILED)):
        indices = np.flatnonzero(state == value).tolist()
        if indices:
            keys[name] = indices
    return keys


def _attach(graph: nx.Graph, host: str, group: HostGroup) -> None:
    """Add a host's edges to its domain and its leaves."""
    if group.nvlink_domain is not None and group.wiring.link is not None:
        graph.add_node(f"nvswitch/{group.nvlink_domain}", kind="nvswitch", name=group.nvlink_domain)
        _edge(
            graph,
            host,
            f"nvswitch/{group.nvlink_domain}",
            "domain",
            group.wiring.link,
            group.wiring.gpus * group.wiring.link.bandwidth.value,
        )
    if group.nics is None:
        return
    for leaf in group.leaves:
        graph.add_node(f"leaf/{leaf}", kind="leaf", name=leaf)
        _edge(graph, host, f"leaf/{leaf}", "leaf", group.nics.link, group.nics.count * group.nics.speed / len(group.leaves))


def _raise_switches(graph: nx.Graph, fabric: Fabric) -> None:
    """Add spines and the core above the leaves."""
    groups = [group for group in fabric.inventory.groups if group.nics is not None]
    link_of: dict[str, Link] = {}
    spines_of: dict[str, dict[str, Link]] = {}
    top: dict[str, tuple[Link, float]] = {}
    island_of: dict[str, str | None] = {}
    for group in groups:
        assert group.nics is not None
        own = [f"leaf/{leaf}" for leaf in group.leaves] + [f"spine/{spine}" for spine in group.spines]
        island_of.update((switch, group.island) for switch in own or [f"host/{name}" for name in group.names])
        for leaf in group.leaves:
            link_of.setdefault(leaf, group.nics.link)
            spines_of.setdefault(leaf, {}).update((spine, group.nics.link) for spine in group.spines)
        if not group.leaves:
            top.update((f"host/{name}", (group.nics.link, group.nics.count * group.nics.speed)) for name in group.names)
    for leaf, spines in spines_of.items():
        offered = sum(edge["bandwidth"] for _, _, edge in graph.edges(f"leaf/{leaf}", data=True))
        uplink = offered / leaf_ratio((leaf,), fabric.network)
        link = link_of[leaf]
        if not spines:
            top[f"leaf/{leaf}"] = (link, uplink)
        for spine, spine_link in spines.items():
            graph.add_node(f"spine/{spine}", kind="spine", name=spine)
            _edge(graph, f"leaf/{leaf}", f"spine/{spine}", "spine", spine_link, uplink / len(spines))
            carried = top.get(f"spine/{spine}", (spine_link, 0.0))[1] + uplink / len(spines) / fabric.network.spine_oversubscription
            top[f"spine/{spine}"] = (spine_link, carried)
    for island in dict.fromkeys(island_of.values()):
        members = [switch for switch in top if island_of[switch] == island]
        core = CORE if island is None else f"{CORE}/{island}"
        if len(members) > 1:
            graph.add_node(core, kind="core", name=island or CORE)
            for switch in members:
                _edge(graph, switch, core, "fabric", *top[switch])


def gpu_graph(fabric: Fabric) -> nx.Graph:
    """Graph down to the GPUs: direct NVLink or xGMI edges, NVSwitch domains, PCIe to the host."""
    inventory = fabric.inventory
    graph = host_graph(fabric)
    for row, name in enumerate(inventory.names):
        group = inventory.groups[int(inventory.group[row])]
        level = fabric.pools[int(fabric.pool_of_node[row])].scale_up_level
        start = int(inventory.first_gpu[row])
        for gpu in range(group.wiring.gpus):
            state = STATES[int(inventory.state[start + gpu])]
            graph.add_node(f"gpu/{name}/{gpu}", kind="gpu", host=name, index=gpu, gpu=group.gpu.name, state=state)
            _edge(graph, f"gpu/{name}/{gpu}", f"host/{name}", level, group.wiring.pcie, group.wiring.pcie.bandwidth.value)
        _join_gpus(graph, name, group)
    return graph


def _join_gpus(graph: nx.Graph, name: str, group: HostGroup) -> None:
    """Add the scale-up edges of one host."""
    wiring = group.wiring
    if wiring.link is None:
        return
    if wiring.direct:
        labels = wiring.group_labels()
        for first, second, bandwidth in wiring.direct:
            inside = wiring.level if labels[first] == labels[second] and wiring.groups else None
            level = inside or ("domain" if wiring.whole_host else "host")
            _edge(graph, f"gpu/{name}/{first}", f"gpu/{name}/{second}", level, wiring.link, bandwidth)
    elif wiring.gpus > 1 or group.nvlink_domain is not None:
        switch = f"nvswitch/{group.nvlink_domain or name}"
        graph.add_node(switch, kind="nvswitch", name=group.nvlink_domain or name)
        for gpu in range(wiring.gpus):
            _edge(graph, f"gpu/{name}/{gpu}", switch, "domain", wiring.link, wiring.link.bandwidth.value)


def components_up_to(graph: nx.Graph, level: str) -> Iterable[set[str]]:
    """Connected components of the graph under edges of this level and the ones below it."""
    upto = set(LEVELS[: LEVELS.index(level) + 1])
    kept = nx.Graph()
    kept.add_nodes_from(graph)
    kept.add_edges_from((one, other) for one, other, at in graph.edges(data="level") if at in upto)
    found: Iterable[set[str]] = nx.connected_components(kept)
    return found

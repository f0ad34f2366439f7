"""The graph is the source of truth: labels, levels and paths agree with networkx on the expanded graph, and graphs can be read back."""

from __future__ import annotations

import itertools
import json
from typing import Any

import networkx as nx
import pytest

from planner.diagnostics import PlannerError
from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.fabric import Fabric
from planner.topology.graph import components_up_to
from planner.topology.inventory import GpuId
from planner.topology.levels import LEVELS

NICS = {"count": 4, "speed": "200Gb/s"}

CLUSTERS: dict[str, dict[str, Any]] = {
    "leaf-spine": {
        "nodes": [
            {
                "name": f"h{leaf}[1-2]",
                "gpu": "h100-sxm-80gb",
                "gpus": 4,
                "nics": NICS,
                "leaf": f"leaf-{leaf}",
                "spine": f"spine-{spine}",
                "price": 24,
            }
            for leaf, spine in ((1, 1), (2, 1), (3, 2))
        ],
        "fabric": {"kind": "infiniband", "oversubscription": 2, "leaf_oversubscription": {"leaf-2": 3}},
        "taken": ["h11:[1-2]", "h32"],
        "failed": ["h21:0"],
    },
    "pairs": {
        "nodes": [{"name": "w[1-2]", "gpu": "a6000-48gb", "gpus": 5, "pairs": [[0, 2], [1, 3]], "nics": {"count": 1, "speed": "100Gb/s"}}]
    },
    "cube mesh": {"nodes": [{"name": "d", "gpu": "v100-sxm2-32gb", "gpus": 8, "failure_domains": {"rack": "r1"}}]},
    "irregular mesh": {"nodes": [{"name": "v", "gpu": "v100-sxm2-32gb", "gpus": 4, "nvlinks": [[0, 1, 2], [0, 2, 2], [1, 2, 1]]}]},
    "full meshes": {
        "nodes": [
            {"name": "a[1-2]", "gpu": "a100-sxm-80gb", "gpus": 4, "scale_up": "nvlink-mesh"},
            {"name": "m", "gpu": "mi300x-192gb", "gpus": 8},
        ]
    },
    "nvl72": {"build": [{"kind": "nvl72", "gpu": "gb200-186gb", "racks": 3, "trays": 2, "racks_per_unit": 2, "nics": NICS}]},
    "rails": {
        "build": [
            {"kind": "hgx", "name": "h", "gpu": "h100-sxm-80gb", "scalable_units": 2, "nodes_per_unit": 2, "nics": NICS, "billing": "node"}
        ]
    },
    "islands": {
        "nodes": [
            {"name": "i[1-2]", "gpu": "l40s-48gb", "gpus": 2},
            {"name": "h1", "gpu": "h100-sxm-80gb", "gpus": 8, "nics": NICS, "leaf": "x"},
            {"name": "h2", "gpu": "h100-sxm-80gb", "gpus": 8, "nics": NICS},
        ]
    },
}


def fabric(name: str) -> Fabric:
    return build_fabric(TopologyDocument.model_validate({"name": name, "fabric": {"kind": "infiniband"}} | CLUSTERS[name]))


def vertex(gpu: GpuId) -> str:
    return f"gpu/{gpu.node}/{gpu.gpu}"


def all_gpus(found: Fabric) -> list[GpuId]:
    return [gpu for scope in range(len(found.scopes)) for gpu in found.scopes.gpus(scope)]


def level_by_graph(found: Fabric, gpus: list[GpuId]) -> str | None:
    if len(set(gpus)) == 1:
        return "gpu"
    for level in LEVELS[1:]:
        for component in components_up_to(found.gpu_graph, level):
            if all(vertex(gpu) in component for gpu in gpus):
                return level
    return None


@pytest.mark.parametrize("name", CLUSTERS)
def test_levels_are_connected_components(name: str) -> None:
    found = fabric(name)
    gpus = all_gpus(found)
    for pair in itertools.combinations_with_replacement(gpus[:24] + gpus[-2:], 2):
        expected = level_by_graph(found, list(pair))
        if expected is None:
            with pytest.raises(PlannerError, match="NOT_CONNECTED"):
                found.level(pair)
        else:
            assert found.level(pair) == expected, pair


@pytest.mark.parametrize("name", CLUSTERS)
def test_columns_are_connected_components(name: str) -> None:
    found = fabric(name)
    for level, labels in (("leaf", found.inventory.leaf), ("spine", found.inventory.spine), ("fabric", found.inventory.fabric)):
        components = list(components_up_to(found.graph, level))
        by_graph = [next(number for number, component in enumerate(components) if f"host/{name}" in component) for name in found.nodes]
        assert len(set(zip(by_graph, labels.tolist(), strict=True))) == len(set(by_graph)) == len(set(labels.tolist()))


@pytest.mark.parametrize("name", [name for name in CLUSTERS if name not in {"islands", "full meshes"}])
def test_hops_are_shortest_paths(name: str) -> None:
    found = fabric(name)
    gpus = all_gpus(found)
    for one, other in itertools.combinations(gpus[:6] + gpus[-6:], 2):
        path = found.path([one, other])
        assert path.hops == nx.shortest_path_length(found.gpu_graph, vertex(one), vertex(other)), (one, other)


@pytest.mark.parametrize("name", CLUSTERS)
def test_bandwidth_of_two_gpus_is_that_of_their_edges(name: str) -> None:
    found = fabric(name)
    graph = found.gpu_graph
    for scope in range(len(found.scopes)):
        gpus = found.scopes.gpus(scope)
        for one, other in itertools.combinations(gpus[:6], 2):
            direct = graph.get_edge_data(vertex(one), vertex(other))
            path = found.path([one, other])
            if direct is not None:
                assert path.peer_bandwidth == direct["bandwidth"]
                assert path.link.name == direct["link"]
            else:
                ways = nx.all_shortest_paths(graph, vertex(one), vertex(other))
                widths = [min(graph.edges[edge]["bandwidth"] for edge in itertools.pairwise(way)) for way in ways]
                assert path.bandwidth in widths


def test_edges_carry_the_alpha_beta_model() -> None:
    found = fabric("leaf-spine")
    edge = found.graph.edges["host/h11", "leaf/leaf-1"]
    assert (edge["level"], edge["link"], edge["bandwidth"]) == ("leaf", "infiniband-hdr-200", 100e9)
    assert edge["alpha"] > 0
    assert edge["beta"] == 1 / edge["bandwidth"]
    assert found.graph.edges["leaf/leaf-1", "spine/spine-1"]["bandwidth"] == 100e9
    assert found.graph.edges["leaf/leaf-2", "spine/spine-1"]["bandwidth"] == pytest.approx(200e9 / 3)


def same(one: Fabric, other: Fabric) -> None:
    assert one.nodes == other.nodes
    assert one.inventory.state.tolist() == other.inventory.state.tolist()
    for column in ("scope", "leaf", "spine", "fabric"):
        assert getattr(one.inventory, column).tolist() == getattr(other.inventory, column).tolist(), column
    assert [one.scopes.sub_scopes(scope) for scope in range(len(one.scopes))] == [
        other.scopes.sub_scopes(scope) for scope in range(len(other.scopes))
    ]
    for first, second in zip(one.pools, other.pools, strict=True):
        assert (first.gpu, first.levels, first.price_per_gpu, first.billing) == (
            second.gpu,
            second.levels,
            second.price_per_gpu,
            second.billing,
        )
        for path, read in zip(first.paths, second.paths, strict=True):
            assert (path.level, path.link.name) == (read.level, read.link.name)
            assert (path.bandwidth, path.peer_bandwidth) == pytest.approx((read.bandwidth, read.peer_bandwidth))
    for node in one.nodes:
        assert one.failure_domains(node) == other.failure_domains(node)


def read_back(graph: nx.Graph, **document: Any) -> Fabric:
    data = json.loads(json.dumps(nx.node_link_data(graph, edges="edges")))
    return build_fabric(TopologyDocument.model_validate({"name": "read back", "graph": data} | document))


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("detail", ["graph", "gpu_graph"])
def test_a_graph_written_as_json_builds_the_same_fabric(name: str, detail: str) -> None:
    found = fabric(name)
    network = {"kind": "infiniband", "oversubscription": found.network.oversubscription}
    same(found, read_back(getattr(found, detail), fabric=network))


def test_a_hand_made_graph() -> None:
    graph = nx.Graph()
    for host in ("a", "b"):
        graph.add_node(host, kind="host", gpu="v100-sxm2-32gb", nics={"count": 1, "speed": "100Gb/s"}, price="$4/h")
        for index in range(4):
            graph.add_node(f"{host}{index}", kind="gpu", host=host, index=index, state="taken" if index == 3 and host == "b" else "free")
            graph.add_edge(f"{host}{index}", host)
        graph.add_edge(f"{host}0", f"{host}1", links=3)
        graph.add_edge(f"{host}2", f"{host}3", bandwidth=50e9)
        graph.add_edge(host, f"leaf-{host}", bandwidth=12.5e9)
        graph.add_edge(f"leaf-{host}", "top", bandwidth=6.25e9)
        graph.nodes[f"leaf-{host}"]["kind"] = "leaf"
    graph.nodes["top"]["kind"] = "spine"
    found = read_back(graph, fabric={"kind": "ethernet"})
    assert found.pools[0].levels == ("gpu", "pair", "host", "spine")
    assert found.pools[0].gpus_per_node == 4
    assert found.path([GpuId("a", 0), GpuId("a", 1)]).bandwidth == 75e9
    assert found.path([GpuId("a", 2), GpuId("a", 3)]).bandwidth == 50e9
    assert found.pools[0].path("spine").oversubscription == 2.0
    assert found.scopes.free.tolist() == [4, 3]


def test_nvswitches_that_join_hosts_are_a_domain() -> None:
    graph = nx.Graph()
    for tray in range(3):
        graph.add_node(f"tray-{tray}", kind="host", gpu="gb200-186gb", gpus=4)
        for switch in range(2):
            graph.add_node(f"switch-{switch}", kind="nvswitch")
            graph.add_edge(f"tray-{tray}", f"switch-{switch}")
    found = read_back(graph)
    assert found.scopes.capacity.tolist() == [12]
    assert found.scopes.name(0) == "switch-0"


def test_all_faults_of_a_graph_at_once() -> None:
    vertices = [
        {"id": "h", "kind": "host", "gpu": "h100-sxm-80gb", "gpus": 8, "color": "red"},
        {"id": "h", "kind": "leaf"},
        {"id": "g", "kind": "gpu", "host": "nowhere", "index": 0},
        {"id": "i", "kind": "host", "gpu": "h100", "gpus": 8, "nics": {"count": 1, "speed": "400Gb/s"}},
        {"id": "s", "kind": "spine"},
    ]
    edges = [{"source": "h", "target": "x"}, {"source": "i", "target": "s"}]
    with pytest.raises(PlannerError) as error:
        build_fabric(TopologyDocument.model_validate({"name": "here", "graph": {"nodes": vertices, "links": edges}}))
    found = [(diagnostic.code, diagnostic.place.path) for diagnostic in error.value.diagnostics if diagnostic.place]
    assert found == [
        ("GRAPH_DUPLICATE_VERTEX", "graph.nodes.1.id"),
        ("GRAPH_GPU_WITHOUT_HOST", "graph.nodes.2"),
        ("GRAPH_UNKNOWN_VERTEX", "graph.edges.0"),
        ("GRAPH_EDGE_NOT_UNDERSTOOD", "graph.edges.1"),
        ("GRAPH_HOST_INVALID", "graph.nodes.0.color"),
        ("UNKNOWN_GPU", "graph.nodes.3.gpu"),
    ]


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiGraph])
def test_other_kinds_of_graphs_are_read_alike(kind: type[nx.Graph]) -> None:
    graph = kind()
    for host in (1, 2):
        graph.add_node(host, kind="host", gpu="v100-sxm2-32gb", nics={"count": 2, "speed": "100Gb/s"})
        for index in range(3):
            graph.add_node(10 * host + index, kind="gpu", host=str(host), index=index)
    graph.add_node(3, kind="leaf")
    # Both ways of a link in a directed graph; in a multigraph, both cables and both single links.
    for one, other in ((11, 10), (10, 11), (21, 20), (20, 21)):
        graph.add_edge(one, other, links=2)
    for one, other in ((1, 3), (3, 1), (2, 3), (3, 2)):
        graph.add_edge(one, other)
    found = read_back(graph, fabric={"kind": "ethernet"})
    assert found.nodes == ("1", "2")
    assert found.pools[0].levels == ("gpu", "pair", "host", "leaf")
    assert found.pools[0].path("pair").bandwidth == (100e9 if kind is nx.MultiGraph else 50e9)
    assert found.inventory.groups[0].leaves == ("3",)


def test_a_host_without_gpus() -> None:
    with pytest.raises(PlannerError, match=r"graph\.nodes\.0\.gpus: host h has no GPUs"):
        build_fabric(
            TopologyDocument.model_validate({"name": "here", "graph": {"nodes": [{"id": "h", "kind": "host", "gpu": "h100-sxm-80gb"}]}})
        )

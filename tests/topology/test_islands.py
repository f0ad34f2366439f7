"""Clusters of several networks that nothing joins."""

from __future__ import annotations

import networkx as nx

from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.graph import components_up_to
from planner.topology.inventory import GpuId


def two_sites(east: str | None, west: str | None):
    def group(name: str, island: str | None) -> dict[str, object]:
        return {
            "name": f"{name}-[1-2]",
            "gpu": "h100-sxm-80gb",
            "gpus": 8,
            "nics": {"count": 8, "speed": "400Gb/s"},
            "leaf": f"leaf-{name}",
            "island": island,
        }

    return TopologyDocument.model_validate({"name": "sites", "nodes": [group("east", east), group("west", west)]})


def levels(document):
    fabric = build_fabric(document)
    labels = fabric.inventory.fabric
    return fabric, labels[fabric.row("east-1")] == labels[fabric.row("west-1")]


def test_no_network_joins_nodes_of_different_islands():
    fabric, joined = levels(two_sites("east", "west"))
    assert not joined
    assert fabric.level([GpuId("east-1", 0), GpuId("east-2", 0)]) == "leaf"
    assert "fabric" not in fabric.pools[0].levels


def test_the_same_island_or_none_is_one_network():
    assert levels(two_sites("site", "site"))[1]
    assert levels(two_sites(None, None))[1]


def test_the_graph_has_the_same_components_and_can_be_read_back():
    fabric, _ = levels(two_sites("east", "west"))
    assert len(list(components_up_to(fabric.graph, "fabric"))) == 2
    again = build_fabric(TopologyDocument.model_validate({"name": "sites", "graph": nx.node_link_data(fabric.graph, edges="edges")}))
    assert again.inventory.fabric.tolist() == fabric.inventory.fabric.tolist()

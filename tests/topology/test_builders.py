"""Builders: the published counts of DGX SuperPODs, short last units, NVL72 racks."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from planner.topology.build import build_fabric
from planner.topology.builders import HgxCluster, hgx, nvl72, spine_count
from planner.topology.document import TopologyDocument
from planner.topology.fabric import Fabric
from planner.topology.inventory import GpuId

NICS = {"count": 8, "speed": "400Gb/s"}


def built(*builders: dict[str, object]) -> Fabric:
    return build_fabric(TopologyDocument.model_validate({"name": "here", "build": builders, "fabric": {"kind": "infiniband"}}))


# DGX SuperPOD H100 network fabrics, larger configurations; B200 architecture for 16 and 64 units.
@pytest.mark.parametrize(
    ("units", "nodes", "gpus", "leaves", "spines"),
    [
        (1, 31, 248, 8, 4),
        (2, 63, 504, 16, 8),
        (3, 95, 760, 24, 16),
        (4, 127, 1016, 32, 16),
        (16, 512, 4096, 128, 128),
        (64, 2048, 16384, 512, 512),
    ],
)
def test_counts_of_a_superpod(units: int, nodes: int, gpus: int, leaves: int, spines: int) -> None:
    cluster = HgxCluster.model_validate(
        {"kind": "hgx", "name": "h", "gpu": "h100-sxm-80gb", "scalable_units": units, "nodes": nodes, "nics": NICS}
    )
    groups = cluster.groups()
    fabric = build_fabric(TopologyDocument(name="here", nodes=groups))
    assert (len(fabric.nodes), len(fabric.inventory.state)) == (nodes, gpus)
    assert len({leaf for group in groups for leaf in group.leaf or ()}) == leaves == cluster.leaves
    assert len({spine for group in groups for spine in group.spine or ()}) == spines


def test_levels_of_two_and_three_tiers() -> None:
    small = built({"kind": "hgx", "name": "h", "gpu": "h100-sxm-80gb", "scalable_units": 4, "nics": NICS})
    assert small.pools[0].levels == ("gpu", "domain", "leaf", "spine")
    assert small.level([GpuId("h-001", 0), GpuId("h-032", 0)]) == "leaf"
    assert small.level([GpuId("h-032", 0), GpuId("h-033", 0)]) == "spine"
    large = built({"kind": "hgx", "name": "h", "gpu": "h100-sxm-80gb", "scalable_units": 16, "nics": NICS})
    assert large.pools[0].levels == ("gpu", "domain", "leaf", "spine", "fabric")
    assert large.level([GpuId("h-001", 0), GpuId("h-128", 0)]) == "spine"
    assert large.level([GpuId("h-001", 0), GpuId("h-129", 0)]) == "fabric"


def test_leaf_spine_has_one_leaf_a_unit() -> None:
    found = built(
        {
            "kind": "hgx",
            "name": "h",
            "gpu": "h200-sxm-141gb",
            "network": "leaf-spine",
            "scalable_units": 3,
            "nodes_per_unit": 4,
            "nics": NICS,
        }
    )
    assert found.nodes == tuple(f"h-{number:02d}" for number in range(1, 13))
    assert [found.leaf_name(leaf) for leaf in range(3)] == ["h-leaf-1", "h-leaf-2", "h-leaf-3"]
    assert found.pools[0].levels == ("gpu", "domain", "leaf", "spine")


def test_a_unit_without_interfaces_has_no_network() -> None:
    assert built({"kind": "hgx", "name": "h", "gpu": "h100-sxm-80gb"}).pools[0].levels == ("gpu", "domain")


def test_racks_fail_together() -> None:
    found = built(
        {"kind": "nvl72", "gpu": "gb200-186gb", "racks": 3, "nics": {"count": 4, "speed": "400Gb/s"}, "failure_domains": {"row": "a"}}
    )
    assert len(found.nodes) == 54
    assert found.failure_domains("rack-02-07") == {
        "node": "rack-02-07",
        "leaf": "rack-unit-2-rail-[1-4]",
        "rack": "rack-02",
        "row": "a",
    }
    assert found.pools[0].levels == ("gpu", "domain", "spine")


def test_builders_from_python_are_those_of_the_file() -> None:
    keys = {"scalable_units": 2, "nodes_per_unit": 3, "nics": NICS, "price": "$24/h"}
    by_file = built({"kind": "hgx", "name": "h", "gpu": "h100-sxm-80gb"} | keys, {"kind": "nvl72", "name": "r", "gpu": "gb200-186gb"})
    groups = (*hgx("h", "h100-sxm-80gb", **keys), *nvl72("r", "gb200-186gb"))
    by_code = build_fabric(TopologyDocument(name="here", nodes=groups, fabric={"kind": "infiniband"}))  # type: ignore[arg-type]
    assert by_code.nodes == by_file.nodes
    assert by_code.pools == by_file.pools
    with pytest.raises(ValidationError):
        hgx("h", "h100-sxm-80gb", racks=2)
    with pytest.raises(ValidationError, match="scalable_units: 3"):
        hgx("h", "h100-sxm-80gb", scalable_units=2, nodes=70)


def test_builders_and_written_nodes_stand_side_by_side() -> None:
    document = {"name": "here", "nodes": [{"name": "x", "gpu": "l40s-48gb", "gpus": 2}], "build": [{"kind": "nvl72", "gpu": "gb200-186gb"}]}
    assert build_fabric(TopologyDocument.model_validate(document)).scopes.capacity.tolist() == [2, 72]


def test_prices_of_builders_name_their_currency() -> None:
    document = {"name": "here", "currency": "EUR", "build": [{"kind": "nvl72", "gpu": "gb200-186gb", "price": "64 USD/h"}]}
    with pytest.raises(Exception, match=r"build\.0\.price.*CURRENCY_MIXED"):
        build_fabric(TopologyDocument.model_validate(document))


def test_spines_are_non_blocking() -> None:
    for leaves in range(1, 65):
        assert spine_count(leaves) * 64 >= leaves * 32

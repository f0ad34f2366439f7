"""Scale-up scopes: capacity, free GPUs, sub-scopes, names, and what is taken or failed."""

from __future__ import annotations

import pytest

from planner.diagnostics import PlannerError
from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.fabric import Fabric
from planner.topology.inventory import GpuId

NICS = {"count": 8, "speed": "400Gb/s"}


def fabric(**document: object) -> Fabric:
    return build_fabric(TopologyDocument.model_validate({"name": "here", "fabric": {"kind": "infiniband"}} | document))


def test_columns_of_a_mixed_cluster() -> None:
    found = fabric(
        nodes=[
            {"name": "h[1-2]", "gpu": "h100-sxm-80gb", "gpus": 8, "nics": NICS, "leaf": "x", "spine": "s"},
            {"name": "l1", "gpu": "l40s-48gb", "gpus": 4, "nics": {"count": 1, "speed": "200Gb/s"}, "leaf": "y", "spine": "s"},
            {"name": "h3", "gpu": "h100-sxm-80gb", "gpus": 8, "nics": NICS, "leaf": "y", "spine": "s"},
        ],
        taken=["h1:[0,4-6]", "l1"],
        failed="h3:7",
    )
    scopes = found.scopes
    assert scopes.pool.tolist() == [0, 0, 1, 0]
    assert scopes.capacity.tolist() == [8, 8, 4, 8]
    assert scopes.free.tolist() == [4, 8, 0, 7]
    assert scopes.leaf.tolist() == [0, 0, 1, 1]
    assert scopes.spine.tolist() == [0, 0, 0, 0]
    assert [scopes.name(scope) for scope in range(len(scopes))] == ["h1/nvlink", "h2/nvlink", "l1/pcie", "h3/nvlink"]
    assert [gpu.gpu for gpu in scopes.free_gpus(0)] == [1, 2, 3, 7]
    assert len(scopes.gpus(0)) == 8
    assert found.state(GpuId("h1", 5)) == "taken"
    assert found.state(GpuId("h3", 7)) == "failed"
    assert found.state(GpuId("h3", 6)) == "free"
    assert found.scope_of("h3") == 3
    assert found.pool("l1").gpu.name == "l40s-48gb"


def test_failed_outlives_taken() -> None:
    found = fabric(nodes=[{"name": "h", "gpu": "h100-sxm-80gb", "gpus": 8}], taken=["h:[0-3]"], failed=["h:2"])
    assert [found.state(GpuId("h", gpu)) for gpu in range(5)] == ["taken", "taken", "failed", "taken", "free"]


@pytest.mark.parametrize(
    ("entry", "free"),
    [
        ("h1:3", [7, 8]),
        ("h1:[4-7]", [4, 8]),
        ("h1:0-1", [6, 8]),
        ("h[1-2]:[0,2,4-5]", [4, 4]),
        ("h2", [8, 0]),
        ("h[1-2]", [0, 0]),
        ("h1,h2:7", [7, 7]),
    ],
)
def test_grammar_of_taken_gpus(entry: str, free: list[int]) -> None:
    assert fabric(nodes=[{"name": "h[1-2]", "gpu": "h100-sxm-80gb", "gpus": 8}], taken=[entry]).scopes.free.tolist() == free


def test_sub_scopes_hold_each_free_gpu_once() -> None:
    found = fabric(
        nodes=[{"name": "w", "gpu": "a6000-48gb", "gpus": 7, "pairs": [[0, 2], [1, 3], [4, 5]]}],
        taken=["w:[3-5]"],
    )
    subs = found.scopes.sub_scopes(0)
    assert [[gpu.gpu for gpu in sub] for sub in subs] == [[0, 2], [1], [6]]
    assert sorted(gpu for sub in subs for gpu in sub) == sorted(found.scopes.free_gpus(0))
    assert fabric(nodes=[{"name": "h", "gpu": "h100-sxm-80gb", "gpus": 8}]).scopes.sub_scopes(0) == ()


def test_a_domain_of_several_hosts_is_one_scope() -> None:
    found = fabric(
        build=[{"kind": "nvl72", "name": "r", "gpu": "gb200-186gb", "racks": 2, "nics": {"count": 4, "speed": "400Gb/s"}}],
        taken=["r-01-[01-02]", "r-02-18:0"],
    )
    scopes = found.scopes
    assert scopes.capacity.tolist() == [72, 72]
    assert scopes.free.tolist() == [64, 71]
    assert scopes.name(1) == "r-02"
    assert scopes.nodes(1)[0] == "r-02-01"
    assert len(scopes.nodes(1)) == 18
    assert scopes.free_gpus(0)[0] == GpuId("r-01-03", 0)


def test_domains_may_be_written_group_by_group() -> None:
    trays = {"gpu": "gb200-186gb", "gpus": 4, "nvlink_domain": "rack"}
    found = fabric(nodes=[{"name": "a[1-2]"} | trays, {"name": "x", "gpu": "h100-sxm-80gb", "gpus": 8}, {"name": "b1"} | trays])
    assert found.scopes.capacity.tolist() == [12, 8]
    assert found.scopes.nodes(0) == ("a1", "a2", "b1")
    assert found.pools[0].scope_size == 12


def test_nodes_alike_share_a_pool_and_others_do_not() -> None:
    alike = {"gpu": "h100-sxm-80gb", "gpus": 8, "price": "$24/h"}
    pools = fabric(
        nodes=[
            {"name": "a"} | alike,
            {"name": "b"} | alike | {"failure_domains": {"rack": "r1"}},
            {"name": "c"} | alike | {"price": "$25/h"},
            {"name": "d"} | alike | {"billing": "node"},
            {"name": "e", "gpu": "H100 SXM 80GB", "gpus": 8, "gpu_price": 3},
        ]
    ).pools
    assert [(pool.nodes, pool.price_per_node, pool.billing) for pool in pools] == [(3, 24.0, "gpu"), (1, 25.0, "gpu"), (1, 24.0, "node")]
    assert pools[0].price_per_gpu == 3.0


def test_prices_fall_back_on_the_catalog_and_say_so() -> None:
    found = fabric(nodes=[{"name": "a", "gpu": "h100-sxm-80gb", "gpus": 8}])
    assert found.pools[0].price_per_gpu == found.pools[0].gpu.price.per_gpu_hour
    assert [diagnostic.code for diagnostic in found.diagnostics] == ["PRICE_FROM_CATALOG"]
    unpriced = fabric(nodes=[{"name": "a", "gpu": "h100-sxm-80gb", "gpus": 8}], currency="CHF")
    assert unpriced.pools[0].price_per_gpu is None


def test_failure_domains_by_node() -> None:
    found = fabric(
        nodes=[
            {
                "name": "a[1-3]",
                "gpu": "h100-sxm-80gb",
                "gpus": 8,
                "nics": NICS,
                "leaf": "x",
                "failure_domains": {"rack": "r[7-9]", "zone": "east"},
            },
            {"name": "b", "gpu": "h100-sxm-80gb", "gpus": 8},
        ]
    )
    assert found.failure_domains("a2") == {"node": "a2", "leaf": "x", "rack": "r8", "zone": "east"}
    assert found.failure_domains("b") == {"node": "b"}
    with pytest.raises(PlannerError, match="nodes go from a1 to b"):
        found.failure_domains("zz")

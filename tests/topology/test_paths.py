"""What one GPU gets through each level: shared interfaces, oversubscription, direct links and PCIe."""

from __future__ import annotations

import pytest

from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.fabric import Fabric
from planner.topology.inventory import GpuId


def fabric(*nodes: dict[str, object], **network: object) -> Fabric:
    document = {"name": "here", "nodes": nodes, "fabric": {"kind": "infiniband"} | network}
    return build_fabric(TopologyDocument.model_validate(document))


def gpus(node: str, *indices: int) -> list[GpuId]:
    return [GpuId(node, index) for index in indices]


def test_an_interface_per_gpu() -> None:
    found = fabric({"name": "h[1-2]", "gpu": "h100-sxm-80gb", "gpus": 8, "nics": {"count": 8, "speed": "400Gb/s"}})
    path = found.pools[0].path("leaf")
    assert (path.bandwidth, path.peer_bandwidth, path.hops, path.nics_per_gpu, path.across_scopes) == (50e9, 50e9, 4, 1.0, True)
    assert path.link.name == "infiniband-ndr-400"
    domain = found.pools[0].path("domain")
    assert (domain.bandwidth, domain.peer_bandwidth, domain.hops, domain.across_scopes) == (450e9, 450e9, 2, False)


@pytest.mark.parametrize(
    ("count", "speed", "bandwidth", "peer"),
    [
        (1, "400Gb/s", 12.5e9, 50e9),
        (2, "400Gb/s", 25e9, 50e9),
        (4, "400Gb/s", 50e9, 50e9),
        (8, "200Gb/s", 50e9, 50e9),
        (4, "800Gb/s", 63e9, 63e9),
    ],
)
def test_interfaces_shared_by_four_gpus(count: int, speed: str, bandwidth: float, peer: float) -> None:
    # An 800 Gb/s interface is faster than the PCIe 5 link behind it, which then is the bottleneck.
    found = fabric({"name": "h[1-2]", "gpu": "h100-sxm-80gb", "gpus": 4, "nics": {"count": count, "speed": speed}})
    path = found.pools[0].path("leaf")
    assert (path.bandwidth, path.peer_bandwidth, path.nics_per_gpu) == (bandwidth, peer, count / 4)


def test_pcie_is_the_bottleneck_of_fast_interfaces() -> None:
    found = fabric({"name": "l[1-2]", "gpu": "l40s-48gb", "gpus": 1, "nics": {"count": 1, "speed": "400Gb/s"}})
    assert found.pools[0].path("leaf").bandwidth == 31.5e9


def test_oversubscription_counts_from_the_spine_up() -> None:
    nics = {"count": 8, "speed": "400Gb/s"}
    names = (("a[1-2]", "leaf-1", "spine-1"), ("b[1-2]", "leaf-2", "spine-1"), ("c[1-2]", "leaf-3", "spine-2"))
    nodes = [{"name": name, "gpu": "h100-sxm-80gb", "gpus": 8, "nics": nics, "leaf": leaf, "spine": spine} for name, leaf, spine in names]
    found = fabric(*nodes, oversubscription="2:1", spine_oversubscription=4, leaf_oversubscription={"leaf-2": 2.5})
    pool = found.pools[0]
    assert [pool.path(level).bandwidth for level in ("leaf", "spine", "fabric")] == [50e9, 20e9, 5e9]
    assert [pool.path(level).oversubscription for level in ("leaf", "spine", "fabric")] == [1.0, 2.5, 10.0]
    assert [pool.path(level).peer_bandwidth for level in ("leaf", "spine", "fabric")] == [50e9] * 3
    # GPUs that stay clear of the worst leaf get what their own leaves have.
    assert found.path([GpuId("a1", 0), GpuId("b1", 0)]).bandwidth == 20e9
    assert found.path([GpuId("a1", 0), GpuId("c1", 0)]).bandwidth == pytest.approx(50e9 / 8)


def test_xgmi_reaches_one_peer_through_one_link() -> None:
    found = fabric({"name": "m", "gpu": "mi300x-192gb", "gpus": 8})
    path = found.pools[0].path("domain")
    assert (path.link.kind, path.bandwidth, path.peer_bandwidth, path.hops) == ("xgmi", 448e9, 64e9, 1)
    assert found.path(gpus("m", 0, 5)).bandwidth == 64e9
    assert found.path(gpus("m", 0, 1, 2, 3)).bandwidth == 192e9
    assert found.path(gpus("m", *range(8))).bandwidth == 448e9


def test_four_a100_share_their_links_evenly() -> None:
    found = fabric({"name": "a", "gpu": "a100-sxm-80gb", "gpus": 4, "scale_up": "nvlink-mesh"})
    path = found.pools[0].path("domain")
    assert (path.bandwidth, path.peer_bandwidth) == (300e9, 100e9)
    assert found.path(gpus("a", 1, 3)).bandwidth == 100e9


def test_pairs_and_what_lies_between_them() -> None:
    found = fabric({"name": "w", "gpu": "a6000-48gb", "gpus": 6, "pairs": [[0, 1], [2, 3], [4, 5]]})
    pair, host = found.path(gpus("w", 2, 3)), found.path(gpus("w", 1, 2))
    assert (pair.level, pair.link.name, pair.bandwidth, pair.hops) == ("pair", "nvlink3-bridge", 56.25e9, 1)
    assert (host.level, host.link.name, host.bandwidth, host.hops) == ("host", "pcie4-x16", 31.5e9, 2)


def test_cube_mesh_is_as_good_as_its_weakest_direct_link() -> None:
    found = fabric({"name": "d", "gpu": "v100-sxm2-32gb", "gpus": 8})
    assert found.path(gpus("d", 0, 1)).bandwidth == 25e9
    assert found.path(gpus("d", 0, 3)).bandwidth == 50e9
    quad = found.path(gpus("d", 0, 1, 2, 3))
    assert (quad.level, quad.bandwidth, quad.peer_bandwidth) == ("mesh", 75e9, 25e9)
    twin = found.path(gpus("d", 0, 4))
    assert (twin.level, twin.link.kind, twin.bandwidth) == ("host", "nvlink", 50e9)
    # Without a direct link between every two of them, PCIe carries the group.
    assert found.path(gpus("d", 0, 5)).link.name == "pcie3-x16"
    assert found.path(gpus("d", *range(8))).bandwidth == 15.75e9


def test_a_gpu_fallen_off_nvlink_leaves_a_mesh_of_the_others() -> None:
    links = [[first, second, 2] for first in range(3) for second in range(first + 1, 3)]
    found = fabric({"name": "v", "gpu": "v100-sxm2-32gb", "gpus": 4, "nvlinks": links})
    assert found.pools[0].levels == ("gpu", "mesh", "host")
    assert found.path(gpus("v", 0, 1, 2)).bandwidth == 100e9
    assert found.path(gpus("v", 2, 3)).link.kind == "pcie"


def test_two_meshes_of_four() -> None:
    found = fabric({"name": "n", "gpu": "h100-nvl-94gb", "gpus": 8, "scale_up": "nvlink-mesh", "pairs": [[0, 1, 2, 3], [4, 5, 6, 7]]})
    assert found.pools[0].levels == ("gpu", "mesh", "host")
    assert found.pools[0].path("mesh").bandwidth == 300e9
    assert found.pools[0].path("mesh").peer_bandwidth == 100e9


def test_a_pcie_link_of_ones_own() -> None:
    found = fabric({"name": "l", "gpu": "h100-pcie-80gb", "gpus": 4, "pcie": "pcie4-x16"})
    assert found.pools[0].path("host").bandwidth == 31.5e9


def test_a_path_between_pools_is_the_slower_one() -> None:
    found = fabric(
        {"name": "h", "gpu": "h100-sxm-80gb", "gpus": 8, "nics": {"count": 8, "speed": "400Gb/s"}, "leaf": "leaf-1"},
        {"name": "l", "gpu": "l40s-48gb", "gpus": 4, "nics": {"count": 1, "speed": "200Gb/s"}, "leaf": "leaf-1"},
    )
    path = found.path([GpuId("h", 0), GpuId("l", 0)])
    assert (path.level, path.bandwidth, path.link.name) == ("leaf", 6.25e9, "infiniband-hdr-200")


def test_a_pool_has_no_path_where_nothing_is_joined() -> None:
    found = fabric({"name": "h", "gpu": "h100-sxm-80gb", "gpus": 8})
    with pytest.raises(KeyError):
        found.pools[0].path("leaf")
    assert found.pools[0].network_levels == ()

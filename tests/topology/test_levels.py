"""Levels of hand-made cases: pairs, meshes, domains, leaves, spines."""

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


def hgx(name: str = "h[1-2]", **keys: object) -> dict[str, object]:
    return {"name": name, "gpu": "h100-sxm-80gb", "gpus": 8, "nics": NICS, "leaf": "leaf-1"} | keys


def test_two_nodes_on_a_leaf() -> None:
    found = fabric(nodes=[hgx()])
    assert found.pools[0].levels == ("gpu", "domain", "leaf")
    assert found.level([GpuId("h1", 3)]) == "gpu"
    assert found.level([GpuId("h1", 3), GpuId("h1", 3)]) == "gpu"
    assert found.level([GpuId("h1", 0), GpuId("h1", 7)]) == "domain"
    assert found.level([GpuId("h1", 0), GpuId("h2", 0)]) == "leaf"


def test_leaves_under_spines_under_a_core() -> None:
    nodes = [hgx(f"h{leaf}[1-2]", leaf=f"leaf-{leaf}", spine=f"spine-{spine}") for leaf, spine in ((1, 1), (2, 1), (3, 2))]
    found = fabric(nodes=nodes)
    assert found.pools[0].levels == ("gpu", "domain", "leaf", "spine", "fabric")
    assert found.level([GpuId("h11", 0), GpuId("h12", 0)]) == "leaf"
    assert found.level([GpuId("h11", 0), GpuId("h21", 0)]) == "spine"
    assert found.level([GpuId("h11", 0), GpuId("h12", 1), GpuId("h31", 0)]) == "fabric"


def test_leaves_without_named_spines_meet_at_one_spine() -> None:
    found = fabric(nodes=[hgx("a", leaf="x"), hgx("b", leaf="y")])
    assert found.pools[0].levels == ("gpu", "domain", "spine")
    assert found.level([GpuId("a", 0), GpuId("b", 0)]) == "spine"


def test_levels_that_join_nothing_are_left_out() -> None:
    assert fabric(nodes=[hgx("h1")]).pools[0].levels == ("gpu", "domain")
    alone = fabric(nodes=[hgx("h1"), hgx("a1", gpu="a100-sxm-80gb")])
    assert [pool.levels for pool in alone.pools] == [("gpu", "domain"), ("gpu", "domain")]
    assert alone.level([GpuId("h1", 0), GpuId("a1", 0)]) == "leaf"


def test_bridged_pairs_lie_inside_the_host() -> None:
    found = fabric(nodes=[{"name": "w", "gpu": "a6000-48gb", "gpus": 6, "scale_up": "nvlink-pairs", "pairs": [[0, 2], [1, 3]]}])
    assert found.pools[0].levels == ("gpu", "pair", "host")
    assert found.pools[0].scale_up_level == "host"
    assert found.level([GpuId("w", 0), GpuId("w", 2)]) == "pair"
    assert found.level([GpuId("w", 0), GpuId("w", 1)]) == "host"
    assert found.level([GpuId("w", 4), GpuId("w", 5)]) == "host"


def test_one_pair_that_fills_the_host_is_its_domain() -> None:
    found = fabric(nodes=[{"name": "w", "gpu": "h100-nvl-94gb", "gpus": 2, "pairs": [[0, 1]]}])
    assert found.pools[0].levels == ("gpu", "domain")
    assert found.pools[0].paths[1].bandwidth == 300e9


def test_cube_mesh_has_two_quads() -> None:
    found = fabric(nodes=[{"name": "d", "gpu": "v100-sxm2-32gb", "gpus": 8, "scale_up": "cube-mesh"}])
    assert found.pools[0].levels == ("gpu", "mesh", "host")
    assert found.level([GpuId("d", gpu) for gpu in range(4)]) == "mesh"
    assert found.level([GpuId("d", gpu) for gpu in (4, 6, 7)]) == "mesh"
    assert found.level([GpuId("d", 3), GpuId("d", 4)]) == "host"


def test_nvl72_holds_its_hosts() -> None:
    found = fabric(
        build=[{"kind": "nvl72", "gpu": "gb200-186gb", "racks": 2, "racks_per_unit": 2, "nics": {"count": 4, "speed": "400Gb/s"}}]
    )
    pool = found.pools[0]
    assert (pool.levels, pool.scale_up_level, pool.scope_size, pool.gpus_per_node) == (("gpu", "domain", "leaf"), "domain", 72, 4)
    assert found.level([GpuId("rack-01-01", 0), GpuId("rack-01-18", 3)]) == "domain"
    assert found.level([GpuId("rack-01-01", 0), GpuId("rack-02-01", 0)]) == "leaf"


def test_hosts_without_nvlink() -> None:
    found = fabric(nodes=[{"name": "l[1-2]", "gpu": "l40s-48gb", "gpus": 4, "nics": {"count": 1, "speed": "200Gb/s"}}])
    assert found.pools[0].levels == ("gpu", "host", "leaf")
    assert found.level([GpuId("l1", 0), GpuId("l1", 1)]) == "host"


def test_rails_of_a_unit_form_one_leaf_group() -> None:
    rails = [f"rail-{rail}" for rail in range(8)]
    found = fabric(nodes=[hgx("a[1-2]", leaf=rails), hgx("b[1-2]", leaf=[f"other-{rail}" for rail in range(8)])])
    assert found.level([GpuId("a1", 0), GpuId("a2", 5)]) == "leaf"
    assert found.level([GpuId("a1", 0), GpuId("b1", 0)]) == "spine"
    assert found.leaf_name(0) == "rail-[0-7]"


def test_islands_are_not_connected() -> None:
    found = fabric(nodes=[hgx("a[1-2]", nics=None, leaf=None), hgx("b[1-2]")])
    assert found.pools[0].levels == ("gpu", "domain")
    with pytest.raises(PlannerError) as error:
        found.level([GpuId("a1", 0), GpuId("a2", 0)])
    assert [diagnostic.code for diagnostic in error.value.diagnostics] == ["NOT_CONNECTED"]
    assert found.level([GpuId("b1", 0), GpuId("b2", 0)]) == "leaf"


def test_a_fabric_of_kind_none_joins_nothing() -> None:
    found = fabric(nodes=[hgx("a[1-2]", leaf=None)], fabric={"kind": "none"})
    assert found.pools[0].levels == ("gpu", "domain")


def test_unknown_gpus_are_all_named() -> None:
    found = fabric(nodes=[hgx()])
    with pytest.raises(PlannerError) as error:
        found.level([GpuId("h3", 0), GpuId("h1", 8), GpuId("h2", -1)])
    assert [diagnostic.code for diagnostic in error.value.diagnostics] == [
        "UNKNOWN_NODE",
        "GPU_INDEX_OUT_OF_RANGE",
        "GPU_INDEX_OUT_OF_RANGE",
    ]
    with pytest.raises(PlannerError, match="NO_GPUS"):
        found.level([])

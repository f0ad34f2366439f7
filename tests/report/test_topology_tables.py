"""A topology as tables: counts that add up, and what looks wrong."""

from __future__ import annotations

import pytest

from planner.report.topology import TABLES, domain_rows, leaf_rows, level_rows, pool_rows, suspicions
from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument


def fabric(**others):
    node = {"name": "h[1-4]", "gpu": "h100-sxm-80gb", "gpus": 8, "nics": {"count": 8, "speed": "400Gb/s"}}
    document = {"name": "t", "nodes": [node | {"leaf": "leaf-1"}], "fabric": {"kind": "infiniband"}} | others
    return build_fabric(TopologyDocument.model_validate(document))


def group(name: str, **others):
    return {"name": name, "gpu": "h100-sxm-80gb", "gpus": 8, "nics": {"count": 8, "speed": "400Gb/s"}} | others


def found_in(found) -> dict[str, str]:
    return {item.code: item.message for item in suspicions(found)}


def test_pools_count_every_gpu_once():
    (row,) = pool_rows(fabric(taken=["h1"], failed=["h2:[0,1]"]))
    assert (row["nodes"], row["free"], row["taken"], row["failed"]) == (4, 22, 8, 2)
    assert row["nics"] == "8 x 400Gb/s infiniband"


def test_levels_tell_how_many_sets_they_join():
    rows = {row["level"]: row for row in level_rows(fabric(nodes=[group("h[1-4]", leaf="a"), group("g[1-2]", leaf="b")]))}
    assert {level: (row["sets"], row["largest_gpus"]) for level, row in rows.items()} == {
        "gpu": (48, 1),
        "domain": (6, 8),
        "leaf": (2, 32),
        "spine": (1, 48),
    }


def test_bridged_pairs_are_a_level_of_their_own():
    pairs = {"name": "b", "gpu": "a100-pcie-80gb", "gpus": 8, "pairs": [[0, 1], [2, 3], [4, 5], [6, 7]]}
    rows = {row["level"]: row for row in level_rows(fabric(nodes=[pairs], fabric={"kind": "none"}))}
    assert (rows["pair"]["sets"], rows["pair"]["largest_gpus"]) == (4, 2)
    # Between pairs there is PCIe only.
    assert rows["host"]["link"].startswith("pcie")
    assert rows["host"]["gb_s_per_gpu"] < rows["pair"]["gb_s_per_gpu"] / 5


def test_leaves_list_their_nodes_and_spines():
    nodes = [group("h[1-2]", leaf=["r1", "r2"], spine=["s1", "s2"]), group("g1", leaf=["r1"], spine=["s1"])]
    rows = {row["leaf"]: row for row in leaf_rows(fabric(nodes=nodes))}
    assert (rows["r1"]["nodes"], rows["r1"]["gpus"], rows["r1"]["spines"]) == (3, 24, 2)
    assert (rows["r2"]["nodes"], rows["r2"]["names"]) == (2, "h[1-2]")


def test_names_no_host_list_can_hold_are_shown_as_they_are():
    assert leaf_rows(fabric(nodes=[group("h[1-2]", leaf="leaf (old) @ hall 2")]))[0]["leaf"] == "leaf (old) @ hall 2"


def test_domains_alike_are_one_row():
    rows = domain_rows(fabric(failed=["h2:3"]))
    assert [(row["domains"], row["gpus"], row["free"]) for row in rows] == [(3, 8, 8), (1, 8, 7)]


def test_nothing_looks_wrong_in_a_sound_cluster():
    assert suspicions(fabric()) == []


@pytest.mark.parametrize(
    ("others", "code", "word"),
    [
        ({"nodes": [group("h[1-3]"), group("h4", gpus=7)]}, "ODD_GPU_COUNT", "h4"),
        ({"failed": ["h3:5"]}, "GPUS_FAILED", "h3 1"),
        ({"nodes": [group("b", gpu="a100-pcie-80gb", gpus=4, pairs=[[0, 1]])]}, "GPU_OFF_NVLINK", "GPU 2, 3"),
        (
            {
                "nodes": [group(f"{name}[1-2]", leaf=f"leaf-{name}") for name in "abc"],
                "fabric": {"kind": "roce", "leaf_oversubscription": {"leaf-b": "8:7"}},
            },
            "LEAF_UPLINKS_MISSING",
            "leaf-b",
        ),
        ({"nodes": [group("h[1-3]", leaf="a"), group("h4", leaf="a", nics={"count": 7, "speed": "400Gb/s"})]}, "NODE_WITHOUT_NICS", "h4"),
        ({"nodes": [group("h[1-3]", leaf=["a", "b"]), group("h4", leaf="a")]}, "NODE_OFF_RAIL", "h4"),
        (
            {
                "nodes": [
                    {"name": f"{name}[1-{trays}]", "gpu": "gb200-186gb", "gpus": 4, "nvlink_domain": name}
                    for name, trays in (("a", 18), ("b", 18), ("c", 17))
                ]
            },
            "DOMAIN_SHORT",
            "c",
        ),
    ],
)
def test_what_looks_wrong_is_named(others, code, word):
    assert word in found_in(fabric(**others))[code]


def test_every_table_has_the_same_columns_in_all_its_rows():
    built = fabric(nodes=[group("h[1-3]", leaf=["a", "b"]), group("h4", leaf="a", gpus=7)])
    for rows in (make(built) for make in TABLES.values()):
        assert rows
        assert len({tuple(row) for row in rows}) == 1

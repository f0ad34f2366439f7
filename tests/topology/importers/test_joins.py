"""Several files are one fabric: joined by host name and GUID, and every join that fails is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.catalog.gpus import gpu
from planner.diagnostics import PlannerError, Severity
from planner.topology.importers.completing import Assumptions
from planner.topology.importers.facts import NicFacts
from planner.topology.importers.guid_map import read_guid_map
from planner.topology.importers.importing import SourceFile, import_topology

H100 = Assumptions(gpu("h100-sxm-80gb"))


def told(found, code):
    return [item for item in found.diagnostics if item.code == code]


def joined(*files: tuple[str, str], assumptions=H100, **others):
    return import_topology("auto", [SourceFile(name, text) for name, text in files], assumptions=assumptions, **others)


def matrix(gpus: int, links: str) -> str:
    labels = [f"GPU{index}" for index in range(gpus)]
    rows = ["\t".join([label, *("X" if label == other else links for other in labels)]) for label in labels]
    return "\t" + "\t".join(labels) + "\n" + "\n".join(rows) + "\n"


def test_cables_and_scheduler_join_by_host_name(text_of_input):
    slurm = "SwitchName=all Nodes=gpu-[01-05],login-1\n"
    found = joined(("ib.txt", text_of_input("ibnetdiscover.txt")), ("topology.conf", slurm))
    assert set(found.fabric.nodes) == {"gpu-01", "gpu-02", "gpu-03", "gpu-04", "gpu-05", "login-1"}
    (left_out,) = told(found, "JOIN_LEFT_OUT")
    assert "gpu-06" in left_out.message
    assert left_out.severity is Severity.WARNING
    (missing,) = told(found, "JOIN_MISSING")
    assert "login-1" in missing.message
    # Where a node hangs is believed to the cables, which are true, and not to the scheduler's picture of them.
    assert {leaf for group in found.data["nodes"] for leaf in group.get("leaf", ())} >= {"leaf-1", "leaf-4"}


def test_hosts_join_by_their_short_names(text_of_input):
    nodes = text_of_input("kubernetes_racks.json").replace('"w0"', '"gpu-01.cluster.example"')
    found = joined(("nodes.json", nodes), ("ib.txt", text_of_input("ibnetdiscover.txt")))
    group = next(group for group in found.data["nodes"] if group["name"] == "gpu-01.cluster.example")
    assert group["leaf"] == ["leaf-1", "leaf-2"]


def test_a_guid_map_names_adapters(text_of_input):
    text = text_of_input("ibnetdiscover.txt")
    before = joined(("ib.txt", text))
    after = joined(("ib.txt", text), guid_map=read_guid_map(text_of_input("guid_map.txt"), "map"))
    assert told(before, "HCA_WITHOUT_HOST")
    assert told(before, "HOST_PORTS_MISSING")
    assert not told(after, "HCA_WITHOUT_HOST")
    assert not told(after, "HOST_PORTS_MISSING")
    assert before.fabric.pools[-1].nics.count == 1
    assert len(after.fabric.pools) == 1


def test_a_guid_of_no_cable_is_told(text_of_input):
    found = joined(("ib.txt", text_of_input("ibnetdiscover.txt")), guid_map={"00000000000000aa": "gpu-01"})
    assert "00000000000000aa" in told(found, "GUID_NOT_FOUND")[0].message


def test_a_dump_names_its_host_and_the_host_its_adapters(text_of_input):
    """A dump called after its host brings the GUID of an adapter that names none."""
    dump = (
        text_of_input("nccl_dump.xml")
        .replace("0x0a1b0c0003000001", "0xa088c20300050001")
        .replace("0x0a0b0c0003000001", "0xa088c20300050000")
    )
    slurm = "SwitchName=all Nodes=gpu-[01-06]\n"
    files = [
        SourceFile("ib.txt", text_of_input("ibnetdiscover.txt")),
        SourceFile("topology.conf", slurm),
        SourceFile("gpu-06.xml", dump, ("gpu-06",)),
    ]
    found = import_topology("auto", files, assumptions=replace(H100, gpus=4))
    assert not told(found, "HCA_WITHOUT_HOST")
    by_guid = import_topology("auto", [*files[:2], SourceFile("any.xml", dump)], assumptions=replace(H100, gpus=4))
    group = next(group for group in by_guid.data["nodes"] if group["name"] == "gpu-06")
    assert group["scale_up"] == "nvswitch"
    assert all("scale_up" not in other for other in by_guid.data["nodes"] if other["name"] != "gpu-06")


def test_a_matrix_holds_for_the_nodes_it_fits():
    slurm = "SwitchName=a Nodes=h[1-2]\n"
    found = joined(("topology.conf", slurm), ("m.txt", matrix(8, "NV18")))
    assert [group["scale_up"] for group in found.data["nodes"]] == ["nvswitch"]
    assert told(found, "PICTURE_SHARED")


def test_two_matrices_hold_for_the_hosts_their_files_name():
    files = [
        SourceFile("topology.conf", "SwitchName=a Nodes=h[1-2]\n"),
        SourceFile("h1.txt", matrix(8, "NV18"), ("h1",)),
        SourceFile("h2.txt", matrix(4, "NV18"), ("h2",)),
    ]
    found = import_topology("auto", files, assumptions=H100)
    assert {group["name"]: group["gpus"] for group in found.data["nodes"]} == {"h1": 8, "h2": 4}


def test_a_matrix_that_fits_no_node_is_told(text_of_input):
    found = joined(("nodes.json", text_of_input("kubernetes_racks.json")), ("m.txt", matrix(4, "NV18")))
    assert told(found, "PICTURE_FITS_NO_NODE")
    assert all("scale_up" not in group for group in found.data["nodes"])


def test_lists_that_disagree_are_told(text_of_input):
    model = "capacity_blocks:\n- {name: b, type: GB200, nodes: [w0, w1]}\n"
    found = joined(("nodes.json", text_of_input("kubernetes_racks.json")), ("model.yaml", model))
    (disagreement,) = told(found, "FILES_DISAGREE")
    assert "w0" in disagreement.message
    assert {group["gpu"] for group in found.data["nodes"]} == {"h100-sxm-80gb"}


def test_a_gpu_option_against_a_file_is_told(text_of_input):
    found = joined(("nodes.json", text_of_input("kubernetes_racks.json")), assumptions=Assumptions(gpu("a100-sxm-80gb")))
    assert told(found, "GPU_OPTION_NOT_USED")


def test_labels_that_no_node_bears_are_told(text_of_input):
    order = text_of_input("kueue.yaml").replace("example.com", "elsewhere.com")
    found = joined(("nodes.json", text_of_input("kubernetes_racks.json")), ("kueue.yaml", order))
    assert told(found, "LABELS_NOT_FOUND")


def test_blocks_of_eight_gpu_servers_are_no_nvlink_domains():
    found = joined(("topology.conf", "BlockName=b1 Nodes=h[1-4]\n"))
    assert told(found, "DOMAIN_IMPOSSIBLE")
    (group,) = found.data["nodes"]
    assert "nvlink_domain" not in group
    assert group["failure_domains"] == {"block": "b1"}


def test_a_domain_too_large_is_narrowed_to_its_parts():
    block = "- switch: {0}\n  nodes: ['{0}n[1-10]']\n  annotations: {{x/domain: row, x/sub-domain: {0}}}\n"
    found = joined(("model.yaml", "blocks:\n" + block.format("r1") + block.format("r2")), assumptions=Assumptions(gpu("gb200-186gb")))
    assert {group["nvlink_domain"] for group in found.data["nodes"]} == {"r1", "r2"}
    assert told(found, "DOMAIN_NARROWED")


def test_trays_of_one_domain_are_made_alike(text_of_input):
    blocks = "BlockName=rack Nodes=gpu-[04-06]\n"
    found = joined(("ib.txt", text_of_input("ibnetdiscover.txt")), ("topology.conf", blocks), assumptions=Assumptions(gpu("gb200-186gb")))
    assert told(found, "DOMAIN_MADE_ALIKE")
    assert {group["nics"]["count"] for group in found.data["nodes"]} == {1}


def test_speeds_of_one_file_serve_the_counts_of_another():
    found = joined(("m.txt", matrix(8, "NV18")), assumptions=replace(H100, nics=NicFacts(8, 50e9)), hosts="h-[1-3]")
    assert found.fabric.pools[0].nics.speed == 50e9
    assert len(found.fabric.nodes) == 3


def test_a_bad_host_list_is_refused():
    with pytest.raises(PlannerError, match="--hosts"):
        joined(("m.txt", matrix(8, "NV18")), hosts="h[1-")


@pytest.mark.parametrize("line", ["e09d730300858d88", "xyz node-1", "1 a b", "1 -bad"])
def test_a_bad_guid_map_is_refused(line):
    with pytest.raises(PlannerError) as caught:
        read_guid_map(f"GUID HOST\n{line}\n", "map")
    assert caught.value.diagnostics[0].code == "GUID_MAP_INVALID"
    assert caught.value.diagnostics[0].place.line == 2

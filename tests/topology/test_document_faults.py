"""Every fault of a document is found at once, each at its place and with what to write instead."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from planner.diagnostics import PlannerError
from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument

NICS = {"count": 8, "speed": "400Gb/s"}


def faults(**document: Any) -> list[tuple[str, str]]:
    with pytest.raises(PlannerError) as error:
        build_fabric(TopologyDocument.model_validate({"name": "here", "fabric": {"kind": "infiniband"}} | document))
    return [(diagnostic.code, diagnostic.place.path if diagnostic.place else "") for diagnostic in error.value.diagnostics]


def node(**keys: Any) -> dict[str, Any]:
    return {"name": "h1", "gpu": "h100-sxm-80gb", "gpus": 8} | keys


def test_all_faults_of_a_file_at_once() -> None:
    found = faults(
        nodes=[
            node(gpu="h100-smx-80gb", nics={"count": 8, "speed": "400Gb/s"}),
            node(name="h[3-1]"),
            node(name="l1", gpu="l40s-48gb", scale_up="nvswitch"),
            node(name="a1", gpu="a6000-48gb", gpus=4, pairs=[[0, 1], [1, 4]]),
            node(name="h[1-2]", leaf="leaf-1"),
        ],
        fabric={"kind": "infiniband", "leaf_oversubscription": {"leaf-9": 2}},
    )
    assert found == [
        ("UNKNOWN_GPU", "nodes.0.gpu"),
        ("HOST_LIST_INVALID", "nodes.1.name"),
        ("SCALE_UP_NOT_SUPPORTED", "nodes.2.scale_up"),
        ("PAIRS_OVERLAP", "nodes.3.pairs.1"),
        ("GPU_INDEX_OUT_OF_RANGE", "nodes.3.pairs.1"),
        ("DUPLICATE_NODE", "nodes.4.name"),
        ("NICS_MISSING", "nodes.4.leaf"),
    ]


def test_a_sound_document_has_none() -> None:
    document = TopologyDocument.model_validate({"name": "here", "nodes": [node(nics=NICS, leaf="x", price="$24/h")]})
    assert build_fabric(document).diagnostics == ()


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"gpu": "l40s-48gb", "scale_up": "nvlink-pairs", "pairs": [[0, 1]]}, ("SCALE_UP_NOT_SUPPORTED", "nodes.0.scale_up")),
        ({"gpu": "mi300x-192gb", "scale_up": "nvswitch"}, ("SCALE_UP_NOT_SUPPORTED", "nodes.0.scale_up")),
        ({"gpu": "a6000-48gb", "scale_up": "nvswitch"}, ("SCALE_UP_NOT_SUPPORTED", "nodes.0.scale_up")),
        ({"scale_up": "xgmi"}, ("SCALE_UP_NOT_SUPPORTED", "nodes.0.scale_up")),
        ({"scale_up_link": "nvlink-9"}, ("UNKNOWN_LINK", "nodes.0.scale_up_link")),
        ({"pcie": "nvlink4"}, ("NOT_A_PCIE_LINK", "nodes.0.pcie")),
        ({"pcie": "pcie9"}, ("UNKNOWN_LINK", "nodes.0.pcie")),
        ({"gpus": 16}, ("DOMAIN_TOO_LARGE", "nodes.0.gpus")),
        ({"gpu": "v100-sxm2-32gb", "gpus": 6, "scale_up": "cube-mesh"}, ("CUBE_MESH_SIZE", "nodes.0.gpus")),
        ({"gpu": "a6000-48gb", "scale_up": "nvlink-pairs"}, ("PAIRS_MISSING", "nodes.0.scale_up")),
        ({"gpu": "a6000-48gb", "pairs": []}, ("PAIRS_MISSING", "nodes.0.pairs")),
        ({"gpu": "a6000-48gb", "pairs": [[0, 1], [2]]}, ("PAIR_SIZE", "nodes.0.pairs.1")),
        ({"gpu": "a6000-48gb", "pairs": [[0, 0]]}, ("PAIRS_OVERLAP", "nodes.0.pairs.0")),
        ({"pairs": [[0, 1]], "scale_up": "nvswitch"}, ("PAIRS_WITHOUT_BRIDGES", "nodes.0.pairs")),
        ({"nvlinks": [[0, 1, 2]], "scale_up": "nvswitch"}, ("NVLINKS_WITHOUT_MESH", "nodes.0.nvlinks")),
        ({"nvlinks": [[0, 9, 2]], "scale_up": "nvlink-mesh"}, ("GPU_INDEX_OUT_OF_RANGE", "nodes.0.nvlinks.0")),
        ({"nvlinks": [[0, 1, 2], [1, 0, 2]]}, ("NVLINKS_OVERLAP", "nodes.0.nvlinks.1")),
        ({"nvlinks": [[0, 1, 10], [0, 2, 10]]}, ("NVLINKS_EXCEED_GPU", "nodes.0.nvlinks")),
        ({"gpu": "l40s-48gb", "nvlink_domain": "rack"}, ("DOMAIN_WITHOUT_NVSWITCH", "nodes.0.nvlink_domain")),
        ({"name": "h[1-2]", "nvlink_domain": "rack"}, ("DOMAIN_TOO_LARGE", "nodes.0.nvlink_domain")),
        ({"nics": NICS, "spine": "s"}, ("LEAF_MISSING", "nodes.0.spine")),
        ({"nics": {"count": 1, "speed": "1Gb/s"}, "leaf": ["a", "b"]}, ("LEAVES_EXCEED_NICS", "nodes.0.leaf")),
        ({"nics": NICS, "leaf": ["a", "a"]}, ("DUPLICATE_LEAF", "nodes.0.leaf")),
        ({"failure_domains": {"node": "x"}}, ("FAILURE_DOMAIN_RESERVED", "nodes.0.failure_domains.node")),
        ({"name": "h[1-3]", "failure_domains": {"rack": "r[1-2]"}}, ("FAILURE_DOMAINS_NOT_PER_NODE", "nodes.0.failure_domains.rack")),
        ({"failure_domains": {"rack": "r[1"}}, ("HOST_LIST_INVALID", "nodes.0.failure_domains.rack")),
        ({"price": "$24/h", "gpu_price": "$4/h"}, ("PRICE_CONTRADICTS", "nodes.0.gpu_price")),
        ({"price": "24 EUR/h"}, ("CURRENCY_MIXED", "nodes.0.price")),
        ({"name": "@racks"}, ("HOST_LIST_INVALID", "nodes.0.name")),
        ({"name": "h[1-99999999]"}, ("HOST_LIST_TOO_LARGE", "nodes.0.name")),
    ],
)
def test_one_fault_of_a_node(keys: dict[str, Any], expected: tuple[str, str]) -> None:
    assert faults(nodes=[node(**keys)]) == [expected]


def test_a_host_cannot_be_described_twice() -> None:
    with pytest.raises(PlannerError, match=r"node h2 and 1 more nodes are already described by nodes\.0\.name"):
        build_fabric(TopologyDocument.model_validate({"name": "here", "nodes": [node(name="h[1-3]"), node(name="h[2-5]")]}))
    with pytest.raises(PlannerError, match="DUPLICATE_NODE"):
        build_fabric(TopologyDocument.model_validate({"name": "here", "nodes": [node(name="h1,h1")] * 2}))


def test_domains_of_unlike_nodes() -> None:
    trays = {"gpu": "gb200-186gb", "gpus": 4, "nvlink_domain": "rack"}
    assert faults(
        nodes=[node(name="a1", **trays), node(name="a2", **trays, price=1), node(name="a[3-18]", **trays), node(name="b", **trays)]
    ) == [
        ("DOMAIN_MIXED", "nodes.1.nvlink_domain"),
        ("DOMAIN_TOO_LARGE", "nodes.0.nvlink_domain"),
    ]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("h3", "UNKNOWN_NODE"),
        ("h[1-4]", "UNKNOWN_NODE"),
        ("h1:8", "GPU_INDEX_OUT_OF_RANGE"),
        ("h[1-2]:[6-9]", "GPU_INDEX_OUT_OF_RANGE"),
        ("h1:", "GPU_LIST_INVALID"),
        ("h1:[3", "GPU_LIST_INVALID"),
        ("h1:7-4", "GPU_LIST_INVALID"),
        ("h1:x", "GPU_LIST_INVALID"),
        ("h1:0,h2:0", "GPU_LIST_INVALID"),
        ("h[1:3", "HOST_LIST_INVALID"),
    ],
)
@pytest.mark.parametrize("key", ["taken", "failed"])
def test_faults_of_taken_and_failed(key: str, entry: str, code: str) -> None:
    assert faults(nodes=[node(name="h[1-2]")], **{key: ["h1:0", entry]}) == [(code, f"{key}.1")]


def test_unknown_names_come_with_the_nearest() -> None:
    document = {"name": "here", "nodes": [node(name="h100-[01-20]", nics=NICS, leaf="leaf-1")], "taken": ["h100-21"]}
    parsed = TopologyDocument.model_validate(document | {"fabric": {"leaf_oversubscription": {"laef-1": 2}}})
    with pytest.raises(PlannerError) as error:
        build_fabric(parsed)
    hints = {diagnostic.code: diagnostic.hint for diagnostic in error.value.diagnostics}
    assert "leaf-1" in hints["UNKNOWN_LEAF"]
    assert "h100-" in hints["UNKNOWN_NODE"]


def test_an_empty_cluster() -> None:
    assert faults() == [("NO_NODES", "nodes")]


def test_assumptions_are_noted() -> None:
    found = build_fabric(TopologyDocument.model_validate({"name": "here", "nodes": [node(name="h[1-2]", nics=NICS, price="$24/h")]}))
    assert [(diagnostic.code, diagnostic.severity) for diagnostic in found.diagnostics] == [("LEAF_ASSUMED", "note")]


@pytest.mark.parametrize(
    "document",
    [
        {"nodes": [node(gpus=0)]},
        {"nodes": [node(color="red")]},
        {"nodes": [node(nics={"count": 8, "speed": "400GB"})]},
        {"nodes": [node(nics={"count": 8, "speed": "0Gb/s"})]},
        {"nodes": [node(leaf=[])]},
        {"nodes": [node(pairs=[[-1, 0]])]},
        {"nodes": [node()], "fabric": {"oversubscription": 0.5}},
        {"nodes": [node()], "fabric": {"oversubscription": "2:0"}},
        {"nodes": [node()], "fabric": {"kind": "token-ring"}},
        {"nodes": [node()], "currency": "dollars"},
        {"build": [{"kind": "torus", "gpu": "h100-sxm-80gb"}]},
    ],
)
def test_wrong_forms_are_refused_when_read(document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TopologyDocument.model_validate({"name": "here"} | document)

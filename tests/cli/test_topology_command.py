"""`planner topology`: files in, a topology out that can be validated, shown and solved."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import networkx as nx
import pytest

from planner.cli.app import run

INPUTS = Path(__file__).parents[1] / "topology/importers/inputs"
PROBLEM = """\
name: chat
topology: {topology}
deployments:
{deployments}
objective: cost
"""
DEPLOYMENT = """\
  - name: chat-{number}
    model: llama-3.1-70b
    engine: {{name: vllm}}
    workload: {{prompt_tokens: 1024, output_tokens: 256, concurrency: 8}}
    slo: {{tpot: 80ms, ttft: 10s}}
"""


def path_of(name: str) -> str:
    return str(INPUTS / name)


@pytest.fixture
def topology(tmp_path, capsys):
    """Import into a file and return its path."""

    def make(*arguments: str, kind: str = "auto") -> Path:
        target = tmp_path / "topology.yaml"
        assert run(["topology", "import", kind, *arguments, "-o", str(target)]) == 0
        assert str(target) in capsys.readouterr().out
        return target

    return make


def test_an_imported_topology_is_valid(topology, capsys):
    target = topology(
        path_of("ibnetdiscover.txt"), "--gpu", "h100-sxm-80gb", "--guid-map", path_of("guid_map.txt"), "--prices", path_of("prices.csv")
    )
    assert run(["validate", str(target)]) == 0
    assert "6 nodes with 48 GPUs" in capsys.readouterr().out
    assert "$64/h" in target.read_text()


def test_without_a_file_the_topology_is_the_answer(capsys):
    assert run(["topology", "import", "nvidia-smi", path_of("nvidia_smi_a100_pairs.txt"), "--gpu", "a100-pcie-80gb"]) == 0
    captured = capsys.readouterr()
    assert "pairs: [[0, 1], [2, 3], [4, 5], [6, 7]]" in captured.out
    assert "warning" in captured.err


def test_json_holds_the_topology_and_what_was_told(capsys):
    arguments = [
        "topology",
        "import",
        "auto",
        path_of("slurm_block.conf"),
        "--gpu",
        "gb200",
        "--nics",
        "4x400Gb/s",
        "--fabric",
        "roce",
        "--json",
    ]
    assert run(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kinds"] == ["slurm"]
    assert document["topology"]["nodes"][0]["nvlink_domain"] == "rack-1"
    assert document["learnt"]
    assert {item["severity"] for item in document["diagnostics"]} <= {"note", "warning"}


def test_a_topology_written_as_json_is_valid_too(tmp_path):
    target = tmp_path / "t.json"
    assert run(["topology", "import", "auto", path_of("kubernetes.json"), "-q", "-o", str(target)]) == 0
    assert run(["validate", str(target)]) == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["kubernets", path_of("kubernetes.json")], "kubernetes"),
        (["auto"], "KIND FILE"),
        (["auto", "no-such-file.txt"], "no-such-file.txt"),
        (["auto", path_of("nccl_graph.xml")], "graph file"),
        (["auto", path_of("slurm_tree.conf"), "--gpu", "h900"], "h900"),
        (["auto", path_of("slurm_tree.conf"), "--gpu", "h100-sxm-80gb", "--gpus", "0"], "--gpus 0"),
        (["auto", path_of("slurm_tree.conf"), "--gpu", "h100-sxm-80gb", "--nics", "fast"], "8x400Gb/s"),
        (["auto", path_of("slurm_tree.conf"), "--gpu", "h100-sxm-80gb", "--nics", "0x400Gb/s"], "8x400Gb/s"),
        (["auto", path_of("slurm_tree.conf"), "--gpu", "h100-sxm-80gb", "--prices", path_of("slurm.yaml")], "no column"),
        (["auto", path_of("slurm_tree.conf"), "--gpu", "h100-sxm-80gb", "-o", "/no/such/folder/t.yaml"], "cannot write"),
    ],
)
def test_what_is_wrong_is_told_and_ends_with_one(arguments, word, capsys):
    assert run(["topology", "import", *arguments]) == 1
    captured = capsys.readouterr()
    assert word in captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_binary_and_escapes_from_a_terminal(tmp_path, capsys):
    binary = tmp_path / "core.1"
    binary.write_bytes(b"\x7fELF\0\0\xff")
    assert run(["topology", "import", "auto", str(binary)]) == 1
    assert "binary" in capsys.readouterr().err
    assert run(["topology", "import", "auto", path_of("nvidia_smi_h100.txt"), "--gpu", "h100-sxm-80gb", "-q"]) == 0


def test_show_prints_every_table(topology, capsys):
    target = topology(path_of("ibnetdiscover.txt"), "--gpu", "h100-sxm-80gb")
    assert run(["topology", "show", str(target)]) == 0
    shown = capsys.readouterr().out
    for word in ("6 nodes with 48 GPUs", "leaf-4", "1.5", "spine-[1-2]", "LEAF_UPLINKS_MISSING", "NODE_OFF_RAIL", "nvlink4-h100"):
        assert word in shown


def test_show_answers_as_json_and_csv(topology, capsys):
    target = topology(path_of("ibnetdiscover.txt"), "--gpu", "h100-sxm-80gb")
    assert run(["topology", "show", str(target), "--json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["leaf"]: row["oversubscription"] for row in document["leaves"]} == {"leaf-1": 1, "leaf-2": 1, "leaf-3": 1, "leaf-4": 1.5}
    assert run(["topology", "show", str(target), "--csv", "--table", "leaves", "-q"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["leaf"] for row in rows] == ["leaf-1", "leaf-2", "leaf-3", "leaf-4"]


@pytest.mark.parametrize("gpus", [[], ["--graph-gpus"]])
def test_the_graph_can_be_read_by_networkx_and_as_a_topology(gpus, topology, tmp_path, capsys):
    target = topology(path_of("ibnetdiscover.txt"), "--gpu", "h100-sxm-80gb", "--prices", path_of("prices.csv"))
    as_json, as_graphml = tmp_path / "graph.json", tmp_path / "graph.graphml"
    for path in (as_json, as_graphml):
        assert run(["topology", "show", str(target), "--graph", str(path), "-q", *gpus]) == 0
    data = json.loads(as_json.read_text())
    graph, again = nx.node_link_graph(data, edges="edges"), nx.read_graphml(as_graphml)
    assert set(graph) == set(again)
    assert graph.number_of_edges() == again.number_of_edges()
    assert sum(kind == "leaf" for _, kind in graph.nodes(data="kind")) == 4
    document = tmp_path / "again.json"
    document.write_text(json.dumps({"name": "again", "graph": data, "fabric": {"kind": "infiniband"}}))
    capsys.readouterr()
    assert run(["validate", str(document)]) == 0
    assert "48 GPUs" in capsys.readouterr().out


def test_a_graph_of_another_form_is_refused(topology, capsys):
    target = topology(path_of("kubernetes.json"))
    assert run(["topology", "show", str(target), "--graph", "graph.dot"]) == 1
    assert ".graphml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "deployments"),
    [
        (["kubernetes.json", "--prices", path_of("prices.csv")], 1),
        (["topograph.yaml", "--gpu", "gb200-186gb", "--nics", "4x400Gb/s"], 1),
        (["ibnetdiscover.txt", "--gpu", "h100-sxm-80gb"], 4),
    ],
)
def test_a_70b_runs_on_an_imported_topology(arguments, deployments, topology, tmp_path, capsys):
    topology(path_of(arguments[0]), *arguments[1:])
    problem = tmp_path / "problem.yaml"
    text = "".join(DEPLOYMENT.format(number=number) for number in range(deployments))
    problem.write_text(PROBLEM.format(topology="topology.yaml", deployments=text))
    assert run(["solve", str(problem), "--json", "-q"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["status"] in {"optimal", "feasible"}
    assert len(plan["deployments"]) == deployments

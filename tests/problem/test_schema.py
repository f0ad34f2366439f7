from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from planner.problem.schema import json_schema, schema_text
from planner.problem.yaml_source import read_yaml

ROOT = Path(__file__).parents[2]

PROBLEM = """\
name: two-node-h100
topology: ../topologies/two_node_h100.yaml
deployments:
  - name: chat
    model: llama-3.1-405b
    precision: {weights: fp8, kv_cache: fp8}
    engine: {name: vllm}
    workload: {prompt_tokens: 2048, output_tokens: 512, concurrency: 32}
    slo: {tpot: 60ms, ttft: 3s}
objective: cost
"""
TOPOLOGY = """\
name: two-node-h100
nodes:
  - {name: "h100-[01-02]", gpu: h100-sxm-80gb, gpus: 8, scale_up: nvswitch, nics: {count: 8, speed: 400Gb/s}, leaf: leaf-1, price: $24/h}
fabric: {kind: infiniband, oversubscription: 1}
"""


def accepts(kind, text):
    return jsonschema.Draft202012Validator(json_schema(kind)).is_valid(read_yaml(text, None).data)


@pytest.mark.parametrize("kind", ["problem", "topology"])
def test_the_committed_schema_is_the_documents_own(kind):
    jsonschema.Draft202012Validator.check_schema(json_schema(kind))
    assert (ROOT / f"schemas/{kind}.schema.json").read_text(encoding="utf-8") == schema_text(kind)


def test_the_schemas_accept_an_ordinary_problem():
    assert accepts("problem", PROBLEM)
    assert accepts("topology", TOPOLOGY)
    inline = PROBLEM.replace(
        "topology: ../topologies/two_node_h100.yaml\n", "topology:\n" + "".join(f"  {line}\n" for line in TOPOLOGY.splitlines())
    )
    assert accepts("problem", inline)


@pytest.mark.parametrize("kind", ["problem", "topology"])
def test_the_schemas_accept_every_shipped_file(kind):
    files = sorted((ROOT / {"problem": "problems", "topology": "topologies"}[kind]).glob("*.yaml"))
    assert files
    assert [file.name for file in files if not accepts(kind, file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("objective: cost", "objective: costs"),
        ("concurrency: 32", "concurrency: 0"),
        ("concurrency: 32", "concurrency: 32, request_rate: 4/s"),
        (", concurrency: 32", ""),
        ("60ms", "60"),
        ("60ms", "60GB"),
        ("slo:", "slos:"),
        ("{tpot: 60ms, ttft: 3s}", "{}"),
        ("    model: llama-3.1-405b\n", ""),
        ("2048", "1000000000000"),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(there, instead):
    assert there in PROBLEM
    assert not accepts("problem", PROBLEM.replace(there, instead))


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("{name: vllm}", "vllm"),
        ("precision: {weights: fp8, kv_cache: fp8}", "precision: any"),
        ("concurrency: 32", "request_rate: 4/s"),
        ("concurrency: 32", "request_rate: 0.5"),
        ("objective: cost", "budget: {per_hour: $100/h, gpus: {h100-sxm-80gb: 8}}"),
        ("    slo:", "    min_efficiency: 70%\n    parallelism: {tp: 8, pp: [1, 2]}\n    headroom: 0.2\n    slo:"),
    ],
)
def test_the_schema_accepts_the_other_forms(there, instead):
    assert there in PROBLEM
    assert accepts("problem", PROBLEM.replace(there, instead))

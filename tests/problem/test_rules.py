"""Keys of the rules about places: short forms, what they ask of the topology, and what is refused."""

from __future__ import annotations

import pytest

from planner.diagnostics import PlannerError
from planner.problem.load import load_problem

PROBLEM = """\
name: rules
topology:
  name: nodes
  nodes:
    - {{name: "h100-[01-02]", gpu: h100-sxm-80gb, gpus: 8, nics: {{count: 8, speed: 400Gb/s}}, leaf: leaf-1, price: $24/h{first}}}
    - {{name: "h100-[03-04]", gpu: h100-sxm-80gb, gpus: 8, nics: {{count: 8, speed: 400Gb/s}}, leaf: leaf-1, price: $24/h{second}}}
  fabric: {{kind: infiniband, oversubscription: 1}}
deployments:
  - name: chat
    model: llama-3.1-70b
    workload: {{prompt_tokens: 2048, output_tokens: 512, concurrency: 32}}
    {rule}
"""


def load(tmp_path, rule, first="", second=""):
    path = tmp_path / "problem.yaml"
    path.write_text(PROBLEM.format(rule=rule, first=first, second=second), encoding="utf-8")
    return load_problem(str(path)).problem.deployments[0]


def codes(tmp_path, rule, first="", second=""):
    with pytest.raises(PlannerError) as caught:
        load(tmp_path, rule, first, second)
    return [(fault.code, fault.place.path) for fault in caught.value.diagnostics]


def test_short_forms(tmp_path):
    assert load(tmp_path, "spread: node").spread.most == 1
    assert load(tmp_path, "spread: {over: leaf, most: 2}").spread.over == "leaf"
    assert load(tmp_path, "resilience: node").resilience.keep == 1.0
    assert load(tmp_path, "resilience: {lose: gpu, keep: 80%}").resilience.keep == 0.8


def test_a_kind_that_the_topology_names(tmp_path):
    racks = {"first": ", failure_domains: {rack: r1}", "second": ", failure_domains: {rack: r2}"}
    assert load(tmp_path, "spread: rack", **racks).spread.over == "rack"
    assert codes(tmp_path, "spread: rack") == [("FAILURE_DOMAIN_UNKNOWN", "deployments.chat.spread.over")]
    assert codes(tmp_path, "resilience: {lose: rack}", first=racks["first"]) == [
        ("FAILURE_DOMAIN_MISSING", "deployments.chat.resilience.lose")
    ]


@pytest.mark.parametrize(
    ("rule", "code", "path"),
    [
        ("spread: gpu", "SPREAD_OVER_GPUS", "spread"),
        ("spread: {over: gpu, most: 2}", "SPREAD_OVER_GPUS", "spread.over"),
        ("spread: {over: node, most: 0}", "OUT_OF_RANGE", "spread.most"),
        ("resilience: {lose: node, keep: 0%}", "OUT_OF_RANGE", "resilience.keep"),
        ("resilience: {lose: node, keep: 120%}", "OUT_OF_RANGE", "resilience.keep"),
        ("resilience: {keep: 50%}", "MISSING_KEY", "resilience.lose"),
        ("resilience: {lose: node, spare: 1}", "UNKNOWN_KEY", "resilience.spare"),
    ],
)
def test_refused(tmp_path, rule, code, path):
    assert codes(tmp_path, rule) == [(code, f"deployments.chat.{path}")]


def test_load_that_may_go_unserved(tmp_path):
    assert load(tmp_path, "may_go_unserved: true").may_go_unserved == 1.0
    assert load(tmp_path, "may_go_unserved: false").may_go_unserved == 0.0
    assert load(tmp_path, "{may_go_unserved: 20%, priority: 3}"[1:-1].replace(", ", "\n    ")).priority == 3
    assert codes(tmp_path, "may_go_unserved: 120%") == [("OUT_OF_RANGE", "deployments.chat.may_go_unserved")]
    assert codes(tmp_path, "priority: high") == [("WRONG_TYPE", "deployments.chat.priority")]
    elastic = "may_go_unserved: true\nobjective: throughput"
    assert codes(tmp_path, elastic) == [("RULES_NOT_TOGETHER", "deployments.chat.may_go_unserved")]


@pytest.mark.parametrize(
    ("rule", "code", "path"),
    [
        ("pin: h100-09", "UNKNOWN_NODE", "pin"),
        ('pin: ["h100-01:[0-9]"]', "GPU_INDEX_OUT_OF_RANGE", "pin.0"),
        ('forbid: [h100-01, "h100-02:x"]', "GPU_LIST_INVALID", "forbid.1"),
        ("forbid: []", "EMPTY_LIST", "forbid"),
        ('forbid: "h100-[01-04]"', "NO_GPU_ALLOWED", "forbid"),
        ('pin: h100-01\n    forbid: "h100-01:[0-7]"', "NO_GPU_ALLOWED", "pin"),
    ],
)
def test_gpus_that_may_be_used(tmp_path, rule, code, path):
    assert load(tmp_path, "pin: h100-01").pin == ("h100-01",)
    found = codes(tmp_path, rule)
    assert [fault for fault, _ in found] == [code]
    assert found[0][1].startswith(f"deployments.chat.{path}")


def test_parts_of_a_node_billed_whole_are_not_told_apart(tmp_path):
    assert codes(tmp_path, "pin: 'h100-01:[0-3]'", first=", billing: node") == [("RULES_NOT_TOGETHER", "deployments.chat.pin")]


def test_a_priority_alone_is_warned_about(tmp_path):
    def warned(rule):
        load(tmp_path, rule)
        found = load_problem(str(tmp_path / "problem.yaml")).warnings
        return [(item.code, item.place.path, item.place.line is not None) for item in found if item.code == "PRIORITY_WITHOUT_EFFECT"]

    assert warned("priority: 3") == [("PRIORITY_WITHOUT_EFFECT", "deployments.chat.priority", True)]
    assert warned("priority: 3\n    may_go_unserved: 20%") == []
    assert warned("priority: 0") == []

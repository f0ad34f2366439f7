"""Real questions about fleets, answered by `planner solve`: the layout that was right, on the GPUs that were right, or why there is none."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import planner
from planner.cli.app import run

CASES = YAML(typ="safe").load((Path(__file__).parent / "fleets.yaml").read_text(encoding="utf-8"))


def problem_of(case):
    """Problem of a case: one deployment called `served`."""
    topology = {"name": "fleet", "fabric": {"kind": "infiniband"}, "nodes": case["nodes"]}
    return {
        "name": "case",
        "topology": topology,
        "deployments": [{"name": "served", **case["ask"]}],
        "objective": case.get("objective", "cost"),
    }


def as_set(value):
    return set(value) if isinstance(value, list) else {value}


def assert_layout(case, replicas):
    """Shapes and GPUs of the plan are those of the case."""
    found = Counter((item["shape"]["gpu"], item["shape"]["tp"], item["shape"]["pp"]) for item in replicas)
    if "plan" in case:
        assert found == Counter({(gpu, tp, pp): count for gpu, tp, pp, count in case["plan"]})
    if "gpus" in case:
        assert sum(len(item["ranks"]) for item in replicas) in as_set(case["gpus"])
    if "only_gpu" in case:
        assert {gpu for gpu, _, _ in found} == {case["only_gpu"]}
    if "tensor_parallel" in case:
        assert {tp for _, tp, _ in found} == {case["tensor_parallel"]}
    if "nodes_of_a_replica" in case:
        assert {len({rank["node"] for rank in item["ranks"]}) for item in replicas} == {case["nodes_of_a_replica"]}
    if "domains" in case:
        assert {rank["domain"] for item in replicas for rank in item["ranks"]} == set(case["domains"])
    if "groups" in case:
        wide = replicas[0]["shape"]["tp"]
        ranks = [[rank["gpu"] for rank in item["ranks"]] for item in replicas]
        groups = [gpus[start : start + wide] for gpus in ranks for start in range(0, len(gpus), wide)]
        assert sorted(groups) == sorted(case["groups"])


@pytest.mark.parametrize("case", CASES, ids=[f"{case['source']}-{case['title']}" for case in CASES])
def test_the_answer_is_the_right_one(case, tmp_path, capsys):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(problem_of(case)), encoding="utf-8")
    code = run(["solve", str(path), "--json", "-q"])
    plan = json.loads(capsys.readouterr().out)
    expected = case.get("status", "optimal")
    assert plan["status"] == expected, [item["message"] for item in plan["diagnostics"]]
    assert code == (3 if expected == "infeasible" else 0)
    assert set(case.get("rejected", ())) <= {item["code"] for item in plan["rejected"]}
    if expected == "optimal":
        assert_layout(case, plan["deployments"][0]["replicas"])
    if "says" in case:
        run(["solve", str(path), "-q"])
        told = capsys.readouterr().out
        assert all(words in told for words in case["says"]), told


def test_the_auditor_refuses_experts_over_two_domains_where_nvlink_is_asked(tmp_path, capsys):
    case = next(case for case in CASES if case["title"].startswith("the same over two racks"))
    problem = problem_of(case)
    asking, free = tmp_path / "asking.json", tmp_path / "free.json"
    asking.write_text(json.dumps(problem), encoding="utf-8")
    problem["deployments"][0].pop("require_nvlink")
    free.write_text(json.dumps(problem), encoding="utf-8")
    solution = planner.solve(free)
    assert planner.audit(free, solution).ok
    assert {item.code for item in planner.audit(asking, solution)} == {"CROSS_NVLINK_DOMAIN_EP"}


@pytest.mark.parametrize(
    ("replicas", "words"),
    [
        ({"max": 1}, "1 replica stops, 100% of a load is not served until it is planned anew"),
        ({"min": 2}, "1 replica stops while the others carry every load"),
    ],
)
def test_a_failure_takes_whole_replicas(replicas, words, tmp_path, capsys):
    """What is left is the replicas less one; of a single replica that is nothing (vllm-project/vllm issue 30112)."""
    problem = problem_of(next(case for case in CASES if case["title"].startswith("N+1")))
    problem["deployments"][0].pop("resilience")
    problem["deployments"][0]["replicas"] = replicas
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(problem), encoding="utf-8")
    assert run(["whatif", str(path), "--worst-failure", "node", "-q"]) == 0
    assert words in capsys.readouterr().out


def test_one_wide_replica_holds_more_contexts_than_two_narrow_ones():
    """The two store the weights twice: 21.9 contexts of 32,000 tokens at TP8, 7.6 in each of two at TP4 (vllm-project/vllm issue 16011)."""
    path = str(Path(__file__).parents[2] / "problems/one_node_70b_efficiency.yaml")
    long = [
        "deployments.assistant.workload={prompt_tokens: 31000, output_tokens: 1000, concurrency: 4}",
        "deployments.assistant.min_efficiency=1%",
    ]
    held = {
        shape: planner.solve(path, [*long, "deployments.assistant.slo=null"], force=shape)
        .plan.deployments[0]
        .replicas[0]
        .memory.max_sequences
        for shape in ("tp8", "tp4")
    }
    assert held["tp8"] > 2 * held["tp4"]

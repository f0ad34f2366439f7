from __future__ import annotations

import pytest

from planner.problem.load import load_problem


def test_values_of_the_problem_are_set(folder):
    overrides = [
        "deployments.chat.workload.concurrency=64",
        "deployments.chat.slo.tpot=80ms",
        "deployments.chat.engine.version=0.10",
        "deployments.0.parallelism.tp=[4, 8]",
        "deployments.chat.precision={weights: bf16}",
        "budget.per_hour=$50/h",
        "budget.gpus.h100-sxm-80gb=8",
        "objective=gpus",
        "seed=7",
    ]
    problem = load_problem(folder.name("problem.yaml"), overrides).problem
    deployment = problem.deployments[0]
    assert (deployment.workload.concurrency, deployment.slo.tpot, deployment.engine.version) == (64, 0.08, "0.10")
    assert deployment.parallelism.tp == (4, 8)
    assert (deployment.precision.weights, deployment.precision.kv_cache) == ("bf16", None)
    assert (problem.budget.per_hour, problem.budget.gpus, problem.objective, problem.seed) == (50.0, {"h100-sxm-80gb": 8}, "gpus", 7)


def test_values_of_the_topology_are_set(folder):
    overrides = [
        "nodes.h100-[01-02].price=$20/h",
        "topology.fabric.oversubscription=2",
        "fabric.leaf_oversubscription.leaf-1=4",
        "currency=USD",
    ]
    loaded = load_problem(folder.name("problem.yaml"), overrides)
    assert loaded.topology.nodes[0].price == 20.0
    assert loaded.topology.fabric.oversubscription == 2.0
    assert loaded.topology.fabric.leaf_oversubscription == {"leaf-1": 4.0}


def test_an_override_changes_the_digest_and_the_last_one_wins(folder):
    path = folder.name("problem.yaml")
    first = load_problem(path).sha256
    assert load_problem(path, ["deployments.chat.workload.concurrency=32"]).sha256 == first
    assert load_problem(path, ["nodes.h100-[01-02].price=$20/h"]).sha256 != first
    twice = ["deployments.chat.workload.concurrency=1", "deployments.chat.workload.concurrency=32"]
    assert load_problem(path, twice).sha256 == first


def test_the_topology_can_be_replaced(folder, monkeypatch):
    folder.write("other.yaml", folder.TOPOLOGY.replace("two-nodes", "other"))
    monkeypatch.chdir(folder.path)
    assert load_problem("problem.yaml", ["topology=other.yaml"]).fabric.name == "other"


def test_an_engine_given_by_name_alone_gets_a_version(folder):
    folder.write("problem.yaml", folder.PROBLEM.replace("{name: vllm}", "vllm"))
    engine = load_problem(folder.name("problem.yaml"), ["deployments.chat.engine.version=0.9"]).problem.deployments[0].engine
    assert (engine.name, engine.version) == ("vllm", "0.9")


def test_names_with_dots_are_found(folder):
    folder.write("topology.yaml", folder.TOPOLOGY.replace("h100-[01-02]", "h100-[01-02].rack.example.org"))
    loaded = load_problem(folder.name("problem.yaml"), ["nodes.h100-[01-02].rack.example.org.price=$1/h"])
    assert loaded.topology.nodes[0].price == 1.0


def test_inline_topologies_are_overridden_in_place(folder):
    inner = "".join(f"  {line}\n" for line in folder.TOPOLOGY.splitlines())
    folder.write("problem.yaml", folder.PROBLEM.replace("topology: topology.yaml\n", f"topology:\n{inner}"))
    for path in ("nodes.h100-[01-02].price", "topology.nodes.h100-[01-02].price"):
        loaded = load_problem(folder.name("problem.yaml"), [f"{path}=$2/h"])
        assert loaded.problem.topology.nodes[0].price == loaded.topology.nodes[0].price == 2.0


@pytest.mark.parametrize(
    ("override", "code", "said"),
    [
        ("deployments.chat.workload.concurency=64", "UNKNOWN_PATH", "deployments.chat.workload.concurrency"),
        ("deployments.chart.slo.tpot=1s", "UNKNOWN_PATH", "deployments.chat.slo.tpot"),
        ("fabric.oversubscripton=2", "UNKNOWN_PATH", "fabric.oversubscription"),
        ("nodes.h100-[01-03].price=$1/h", "UNKNOWN_PATH", "nodes.h100-[01-02].price"),
        ("deployments.1.model=x", "UNKNOWN_PATH", "deployments.chat.model"),
        ("zzz=1", "UNKNOWN_PATH", "objective"),
        ("concurrency", "OVERRIDE_NOT_UNDERSTOOD", "PATH=VALUE"),
        ("=1", "OVERRIDE_NOT_UNDERSTOOD", "PATH=VALUE"),
        ("deployments.chat.workload.concurrency=-3", "OUT_OF_RANGE", "at least 1"),
        ("deployments.chat.workload.concurrency=many", "WRONG_TYPE", "whole number"),
        ("deployments.chat.slo.tpot=60", "MISSING_UNIT", "60ms"),
        ("deployments.chat.workload={prompt_tokens: 1", "YAML_SYNTAX", "}"),
        ("deployments.chat.engine.name=vlm", "UNKNOWN_ENGINE", "vllm"),
    ],
)
def test_what_cannot_be_set_is_said_with_the_nearest(folder, override, code, said):
    (fault,) = folder.errors(overrides=[override])
    assert fault.code == code
    assert said in fault.hint
    assert fault.place.file.startswith("--set")


def test_all_wrong_overrides_are_reported(folder):
    faults = folder.errors(overrides=["zzz=1", "nodes.x=1", "objective=costs"])
    assert sorted(fault.code for fault in faults) == ["UNKNOWN_PATH", "UNKNOWN_PATH", "WRONG_CHOICE"]

"""What is started is audited: limits, checkpoint, longest request and nodes are those of problem, catalog and topology."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import planner
from planner.answer.answering import Options, answer
from planner.audit.audit import audit
from planner.catalog.models import model_names
from planner.catalog.read import read_table
from planner.plan.document import PlanDocument
from planner.plan.outcome import Status

PROBLEMS = Path(__file__).parents[2] / "problems"


@pytest.fixture(scope="module")
def solution():
    return planner.solve(str(PROBLEMS / "mixed_fleet.yaml"))


def codes(solution, data):
    loaded = solution.problem
    plan = PlanDocument.model_validate(data)
    return {item.code for item in audit(loaded.problem, loaded.fabric, loaded.architectures, plan)}


def test_the_plan_as_it_is_passes(solution):
    assert codes(solution, solution.plan.model_dump()) == set()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_model_len", 1281),
        ("max_model_len", 0),
        ("max_batched_tokens", 2048),
        ("max_num_seqs", 256),
        ("gpu_memory_utilization", 0.95),
        ("gpu_memory_utilization", float("nan")),
        ("gpu_memory_utilization", 0.8999),
    ],
)
def test_a_wrong_limit_is_found(solution, name, value):
    data = solution.plan.model_dump()
    data["deployments"][0]["replicas"][0]["limits"][name] = value
    assert codes(solution, data) == {"LIMITS_MISMATCH"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hugging_face", None),
        ("hugging_face", "Qwen/Qwen3-32B"),
        ("weights", "fp8"),
        ("method", "awq"),
        ("dtype", "fp16"),
        ("kv_cache", "fp8"),
        ("context", 8192),
        ("experts", 8),
    ],
)
def test_a_wrong_checkpoint_is_found(solution, name, value):
    data = solution.plan.model_dump()
    data["deployments"][0]["checkpoint"][name] = value
    assert codes(solution, data) == {"CHECKPOINT_MISMATCH"}


@pytest.mark.parametrize("tokens", [0, 1279, 10**30])
def test_a_wrong_length_of_requests_is_found(solution, tokens):
    data = solution.plan.model_dump()
    data["deployments"][0]["request_tokens"] = tokens
    assert "REQUEST_TOKENS_MISMATCH" in codes(solution, data)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", "nowhere"),
        ("gpu", "a100-sxm-80gb"),
        ("gpus", 3),
        ("taken", (7,)),
        ("domain", "other"),
        ("domain_nodes", 18),
        ("leaf", "other"),
    ],
)
def test_a_node_told_otherwise_is_found(solution, name, value):
    data = solution.plan.model_dump()
    for node in data["nodes"]:
        before = node[name]
        node[name] = value
        assert codes(solution, data) == {"NODE_MISMATCH"}
        node[name] = before


def test_nodes_left_out_repeated_or_without_replicas_are_found(solution):
    data = solution.plan.model_dump()
    nodes = data["nodes"]
    idle = next(name for name in solution.problem.fabric.nodes if name not in {node["name"] for node in nodes})
    for wrong in (nodes[1:], (*nodes, nodes[0]), (*nodes, {**nodes[0], "name": idle})):
        assert codes(solution, {**data, "nodes": wrong}) == {"NODE_MISMATCH"}


def test_a_plan_without_these_keys_claims_nothing(solution):
    """Plans written before there were such keys stay right; what starts a plan refuses them."""
    data = {**solution.plan.model_dump(), "nodes": ()}
    for deployment in data["deployments"]:
        deployment.update(checkpoint=None, request_tokens=None)
        for replica in deployment["replicas"]:
            replica["limits"] = None
    assert codes(solution, data) == set()


def test_limits_that_are_asked_for_are_those_to_tell():
    asked = ("deployments.chat.memory={max_model_len: 9000, max_batched_tokens: 4096, max_num_seqs: 96, gpu_memory_utilization: 85%}",)
    found = answer(str(PROBLEMS / "two_node_h100.yaml"), Options(overrides=asked))
    limits = found.plan.deployments[0].replicas[0].limits
    assert limits.model_dump() == {
        "max_model_len": 9000,
        "max_batched_tokens": 4096,
        "max_num_seqs": 96,
        "gpu_memory_utilization": 0.85,
    }
    plain = answer(str(PROBLEMS / "two_node_h100.yaml"))
    loaded = plain.loaded
    wrong = [item.code for item in audit(loaded.problem, loaded.fabric, loaded.architectures, found.plan)]
    assert wrong.count("LIMITS_MISMATCH") == 4 * len(found.plan.deployments[0].replicas)


def test_a_folder_named_like_a_model_is_no_published_checkpoint(tmp_path):
    """The config that was read is the folder's own, so nothing may be loaded under the catalog's id."""
    folder = tmp_path / "llama-3.1-8b"
    folder.mkdir()
    config = read_table("models/llama-3.1-8b.json")["config"]
    folder.joinpath("config.json").write_text(json.dumps({**config, "num_hidden_layers": 30}))
    shutil.copy(PROBLEMS.parent / "topologies" / "two_node_h100.yaml", tmp_path)
    path = tmp_path / "problem.yaml"
    path.write_text(
        "name: own\ntopology: two_node_h100.yaml\ndeployments:\n  - {name: chat, model: llama-3.1-8b, engine: vllm, "
        "workload: {prompt_tokens: 512, output_tokens: 64, concurrency: 8}}\nobjective: cost\n"
    )
    found = answer(str(path))
    assert sum(found.plan.deployments[0].replicas[0].shape.partition) == 30
    assert found.plan.deployments[0].checkpoint.hugging_face is None
    data = found.plan.model_dump()
    data["deployments"][0]["checkpoint"]["hugging_face"] = "meta-llama/Llama-3.1-8B"
    loaded = found.loaded
    wrong = audit(loaded.problem, loaded.fabric, loaded.architectures, PlanDocument.model_validate(data))
    assert {item.code for item in wrong} == {"CHECKPOINT_MISMATCH"}


def test_every_config_of_the_catalog_names_its_repository_first():
    """What is taken for the published id is one."""
    for name in model_names():
        assert read_table(f"models/{name}.json")["source"].split()[0].count("/") == 1, name


@pytest.mark.thorough
@pytest.mark.parametrize("path", sorted(PROBLEMS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_plans_of_all_shipped_problems_pass(path):
    found = answer(str(path))
    if found.plan.status in {Status.INFEASIBLE.value, Status.UNKNOWN.value}:
        assert found.plan.nodes == ()
        return
    assert found.plan.nodes
    assert all(deployment.checkpoint is not None and deployment.request_tokens for deployment in found.plan.deployments)
    loaded = found.loaded
    assert audit(loaded.problem, loaded.fabric, loaded.architectures, found.plan, loaded.current) == ()

"""DeepSeek-V4 from the question to the options of the engine: planned, audited, launched and read back."""

from __future__ import annotations

import json

import pytest

import planner
from planner.diagnostics import errors
from planner.launch.launching import launch
from planner.placement.judge import judge
from planner.placement.kinds import read_placement
from planner.problem.load import load_problem

H200 = {
    "name": "h200-[01-02]",
    "gpu": "h200-sxm-141gb",
    "gpus": 8,
    "scale_up": "nvswitch",
    "nics": {"count": 8, "speed": "400Gb/s"},
    "price": "$28/h",
}
B200 = {"name": "b200", "gpu": "b200-180gb", "gpus": 8, "scale_up": "nvswitch", "price": "$40/h"}
LOAD = {"prompt_tokens": 8192, "output_tokens": 1024, "concurrency": 64}


def problem_of(name, node, **asked):
    """One deployment of a model on nodes of one kind."""
    topology = {"name": "fleet", "nodes": [node]} | ({"fabric": {"kind": "infiniband"}} if "nics" in node else {})
    return {
        "name": "compressed",
        "topology": topology,
        "deployments": [{"name": "served", "model": name, "engine": {"name": "vllm"}, "workload": LOAD, "slo": {"tpot": "80ms"}, **asked}],
    }


@pytest.fixture
def solved(tmp_path):
    """Path of a problem and its solution."""

    def solve(name, node, **asked):
        path = tmp_path / "problem.json"
        path.write_text(json.dumps(problem_of(name, node, **asked)), encoding="utf-8")
        return path, planner.solve(path)

    return solve


@pytest.mark.parametrize(
    ("name", "node", "gpus"),
    [("deepseek-v4-flash", {**H200, "name": "h200-01"}, 2), ("deepseek-v4-pro", H200, 8), ("deepseek-v4-pro", B200, 6)],
)
def test_a_plan_is_proved_and_audited_for_a_version_that_runs_the_model(name, node, gpus, solved):
    """Flash, 145 GiB, needs two H200; Pro, 805 GiB, all eight of a node, or six B200 in three stages."""
    path, solution = solved(name, node)
    assert (solution.status, solution.gpus_used) == ("optimal", gpus)
    assert planner.audit(path, solution).ok
    notes = {item.code: item for item in solution.plan.diagnostics}
    assert notes["ENGINE_NEWER"].severity == "note"
    assert "0.21" in notes["ENGINE_NEWER"].message


def test_a_version_that_is_named_is_not_replaced(solved):
    path, solution = solved("deepseek-v4-flash", B200, engine={"name": "vllm", "version": "0.12"})
    assert solution.status == "infeasible"
    codes = {item.code for item in solution.plan.rejected}
    assert "ATTENTION_NOT_SUPPORTED" in codes
    assert "ENGINE_NEWER" not in {item.code for item in solution.plan.diagnostics}
    assert load_problem(path).problem.deployments[0].engine.version == "0.12"


def test_it_is_launched_with_its_pages_and_tokenizer_and_read_back(solved, tmp_path):
    path, solution = solved("deepseek-v4-flash", {**H200, "name": "h200-01"})
    directory = launch(solution.plan, "vllm")
    script = next(file for file in directory.files if file.text.startswith("#!"))
    assert all(option in script.text for option in ("--block-size 256", "--tokenizer-mode deepseek_v4", "--kv-cache-dtype fp8"))
    (tmp_path / "serve.sh").write_text(script.text, encoding="utf-8")
    problem = load_problem(path)
    judgement = judge(problem, read_placement(str(tmp_path / "serve.sh"), problem))
    assert not errors(judgement.diagnostics)

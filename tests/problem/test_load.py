from __future__ import annotations

import json

import pytest

from planner.problem.documents import Problem
from planner.problem.load import load_any, load_problem, load_topology


def test_everything_a_problem_names_is_loaded(folder):
    loaded = load_problem(folder.name("problem.yaml"))
    deployment = loaded.problem.deployments[0]
    assert (deployment.workload.concurrency, deployment.slo.tpot, deployment.slo.ttft) == (32, 0.06, 3.0)
    assert (loaded.fabric.name, len(loaded.fabric.nodes)) == ("two-nodes", 2)
    assert loaded.architectures[0].layers == 32
    assert [note.code for note in loaded.warnings] == ["PRECISION_ASSUMED"]
    assert loaded.warnings[0].place.line == 6
    assert loaded.summary == "two-nodes: a valid problem, 1 deployment on 16 GPUs"


def test_paths_are_relative_to_the_file_that_names_them(folder, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert load_problem(folder.name("problem.yaml")).fabric.name == "two-nodes"
    monkeypatch.chdir(folder.path)
    assert load_problem("problem.yaml").fabric.name == "two-nodes"


def test_a_model_may_be_named_by_its_folder(folder):
    text = folder.PROBLEM.replace("model/config.json", "./model")
    folder.write("problem.yaml", text)
    assert load_problem(folder.name("problem.yaml")).architectures[0].hidden_size == 4096


def test_the_quantization_beside_a_config_is_read(folder):
    folder.write("model/hf_quant_config.json", json.dumps({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}))
    scheme = load_problem(folder.name("problem.yaml")).architectures[0].quantization
    assert (scheme.weights, scheme.kv_cache) == ("fp8", "fp8")


def test_the_digest_is_of_the_contents_only(folder):
    first = load_problem(folder.name("problem.yaml"))
    folder.write(
        "copy.yaml",
        "# a comment\n" + folder.PROBLEM.replace("{name: vllm}", "vllm").replace("60ms", "0.06 s").replace("objective: cost", ""),
    )
    assert load_problem(folder.name("copy.yaml")).sha256 == first.sha256
    folder.write("model/config.json", json.dumps(folder.CONFIG, indent=3))
    assert load_problem(folder.name("problem.yaml")).sha256 == first.sha256


@pytest.mark.parametrize(
    ("name", "there", "instead"),
    [("problem.yaml", "32}", "33}"), ("topology.yaml", "$24", "$25"), ("model/config.json", "14336", "14464")],
)
def test_the_digest_changes_with_any_of_the_files(folder, name, there, instead):
    before = load_problem(folder.name("problem.yaml")).sha256
    file = folder.path / name
    file.write_text(file.read_text().replace(there, instead))
    assert load_problem(folder.name("problem.yaml")).sha256 != before


def test_an_inline_topology_is_the_same_as_a_file(folder):
    first = load_problem(folder.name("problem.yaml"))
    inner = "".join(f"  {line}\n" for line in folder.TOPOLOGY.splitlines())
    folder.write("inline.yaml", folder.PROBLEM.replace("topology: topology.yaml\n", f"topology:\n{inner}"))
    second = load_problem(folder.name("inline.yaml"))
    assert second.sha256 == first.sha256
    assert second.problem.topology == first.topology


def test_a_topology_by_itself(folder):
    loaded = load_topology(folder.name("topology.yaml"))
    assert loaded.summary == "two-nodes: a valid topology, 2 nodes with 16 GPUs"
    assert load_any(folder.name("topology.yaml")).sha256 == loaded.sha256
    assert load_topology(folder.name("topology.yaml"), ["nodes.h100-[01-02].gpus=4"]).fabric.pools[0].gpus_per_node == 4


def test_budgets_are_by_catalog_name(folder):
    folder.write("problem.yaml", folder.PROBLEM + "budget: {per_hour: $100/h, gpus: {H100 SXM 80GB: 8, h200-sxm-141gb: 0}}\n")
    loaded = load_problem(folder.name("problem.yaml"))
    assert loaded.problem.budget.gpus == {"h100-sxm-80gb": 8, "h200-sxm-141gb": 0}
    assert loaded.problem.budget.per_hour == 100.0
    assert [note.code for note in loaded.warnings if note.code == "BUDGET_WITHOUT_GPUS"] == ["BUDGET_WITHOUT_GPUS"]


def test_the_problem_reads_its_own_output(folder):
    problem = load_problem(folder.name("problem.yaml")).problem
    assert Problem.model_validate(problem.model_dump()) == problem
    assert Problem.model_validate_json(problem.model_dump_json()) == problem

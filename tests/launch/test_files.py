"""The files of every target are right by the rules of those who read them: schemas, the engines' published options, shells, YAML and Python."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import jsonschema
import pytest
import yaml

from planner.diagnostics import PlannerError
from planner.launch.directory import LaunchDirectory, LaunchOptions
from planner.launch.engine_flags import checked_version, flags_of, unknown_flags
from planner.launch.launching import TARGETS, launch
from planner.placement.engine_command import find_engine
from planner.placement.shell_text import commands
from tests.launch.plans import OTHERS, SHIPPED, plan_of

SCHEMAS = json.loads((Path(__file__).parent / "schemas.json").read_text())
QUEUED = LaunchOptions(queue="serving", namespace="models")


@cache
def launched(name: str, target: str) -> LaunchDirectory | None:
    try:
        return launch(plan_of(name), target, QUEUED if target == "leader-worker-set" else None)
    except PlannerError:
        return None


ALL = ("two_node_h100", "405b_bf16_four_nodes", "mixed_fleet", "deepseek_v3_h200", "nvl72_rack", *OTHERS)
# One of each kind of layout; the round trips launch the others.
SAMPLE = ("two_node_h100", "deepseek_v3_h200", "nvl72_rack", "several-nodes", "tensor-over-trays", "one-card")
over_layouts = pytest.mark.parametrize(
    "names", [pytest.param(SAMPLE, id="sample"), pytest.param(ALL, id="all", marks=pytest.mark.thorough)]
)


def everything(names):
    assert set(names) <= {*SHIPPED, *OTHERS}
    for name in names:
        for target in TARGETS:
            directory = launched(name, target)
            if directory is not None:
                yield name, target, directory


def documents(directory: LaunchDirectory):
    for file in directory.files:
        if file.path.endswith(".yaml"):
            yield from ((file.path, data) for data in yaml.load_all(file.text, Loader=yaml.CSafeLoader))


@cache
def validator(part: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": SCHEMAS["$defs"]})


@over_layouts
def test_kubernetes_documents_meet_their_schemas(names):
    kinds = set()
    for name, target, directory in everything(names):
        for path, data in documents(directory):
            if not isinstance(data, dict) or "kind" not in data:
                continue
            kinds.add(data["kind"])
            for part in ("named", data["kind"]):
                validator(part).validate(data)
            parts = [component["name"].lower() for component in data.get("spec", {}).get("components", ())]
            assert len(parts) == len(set(parts)), (name, target, path)
    assert kinds == set(SCHEMAS["$defs"]) & {kind for kind in SCHEMAS["$defs"] if kind[0].isupper()}


@over_layouts
def test_documents_of_one_file_have_different_names(names):
    for name, target, directory in everything(names):
        seen = [
            (path, data["kind"], data["metadata"]["name"])
            for path, data in documents(directory)
            if isinstance(data, dict) and "kind" in data
        ]
        assert len(seen) == len(set(seen)), (name, target)


def engine_words(directory: LaunchDirectory):
    """Every command of an engine with its words, whatever file it stands in."""
    for file in directory.files:
        if file.path.endswith((".sh", ".sbatch")):
            lists = [[word.text for word in words] for words in commands(file.text, file.path)]
        elif file.path.endswith(".py"):
            rows = ast.literal_eval(re.search(r"^REPLICAS = (\[.*?^\])", file.text, re.DOTALL | re.MULTILINE)[1])
            lists = [["vllm", "serve", *row["arguments"]] for row in rows]
        else:
            containers = list(_containers(list(yaml.load_all(file.text, Loader=yaml.CSafeLoader)))) if file.path.endswith(".yaml") else []
            lists = [[*container.get("command", ()), *container.get("args", ())] for container in containers]
            scripts = [container["args"][0] for container in containers if container.get("command") == ["bash", "-c"]]
            lists += [[word.text for word in words] for text in scripts for words in commands(text, "")]
        yield from lists


def _containers(data):
    if isinstance(data, dict):
        yield from data.get("containers", ())
        for value in data.values():
            yield from _containers(value)
    elif isinstance(data, list):
        for value in data:
            yield from _containers(value)


@over_layouts
def test_every_option_is_one_the_engine_publishes(names):
    seen = {}
    for name, target, directory in everything(names):
        for words in engine_words(directory):
            placed = [type("W", (), {"text": word, "place": None})() for word in words]
            found = find_engine(placed)
            if found is None:
                continue
            engine, begin, first = found
            table = "dynamo.trtllm" if words[begin] == "dynamo.trtllm" else engine
            assert unknown_flags(table, words[first:]) == [], (name, target)
            seen[table] = seen.get(table, 0) + 1
    assert set(seen) == {"vllm", "sglang", "tensorrt-llm", "dynamo.trtllm"}


def test_the_lists_of_options_name_their_version():
    for engine, least in (("vllm", 180), ("sglang", 250), ("tensorrt-llm", 20)):
        assert len(flags_of(engine)) >= least
        assert re.fullmatch(r"[0-9]+\.[0-9.]+", checked_version(engine))
    assert unknown_flags("vllm", ["--tensor-parallel-size=8", "--no-such-option", "x"]) == ["--no-such-option"]


@over_layouts
def test_shell_files_parse_and_python_compiles(names):
    count = 0
    texts = {}
    for name, target, directory in everything(names):
        for file in directory.files:
            if file.path.endswith((".sh", ".sbatch")):
                texts[file.text] = (name, target, file.path)
            elif file.path.endswith(".py"):
                compile(file.text, file.path, "exec")
                count += 1
        for path, data in documents(directory):
            for container in _containers(data):
                if container.get("command") == ["bash", "-c"]:
                    texts[container["args"][0]] = (name, target, path)
    together = "\n".join(f"f{number}() {{\n{text}\n}}" for number, text in enumerate(texts))
    done = subprocess.run(["bash", "-n"], input=together, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert count == sum(target == "ray" for _, target, _ in everything(names)) > 0
    assert len(texts) > 2 * len(names)


def test_ports_of_one_node_are_different():
    directory = launched("replicas-on-a-node", "vllm")
    script = next(file.text for file in directory.files if file.path == "serve.sh")
    ports = re.findall(r"--port (\d+)", script)
    assert len(ports) == len(set(ports)) == 4
    assert "CUDA_VISIBLE_DEVICES=1,0" in script


def test_workers_find_their_rank_by_the_node_they_are_on():
    text = next(file.text for file in launched("several-nodes", "leader-worker-set").files if file.path == "leader-worker-set.yaml")
    worker = yaml.load_all(text, Loader=yaml.CSafeLoader)
    sets = [data for data in worker if data["kind"] == "LeaderWorkerSet"]
    inner = sets[0]["spec"]["leaderWorkerTemplate"]
    script = inner["workerTemplate"]["spec"]["containers"][0]["args"][0]
    for number, node in enumerate(("h100-02", "h100-03", "h100-04"), start=1):
        for variables in ({"NODE_NAME": node, "LWS_LEADER_ADDRESS": "leader"},):
            ready = script.replace("$(LWS_LEADER_ADDRESS)", "leader").replace("exec env", "echo").replace("exec ", "echo ")
            done = subprocess.run(["bash", "-c", ready], env=variables, capture_output=True, text=True, check=True)
            words = shlex.split(done.stdout)
            assert f"--node-rank={number}" in words
            assert "--master-addr=leader" in words
    note = inner["leaderTemplate"]["metadata"]["annotations"]
    assert note["kueue.x-k8s.io/podset-required-topology"] == "fabric.topograph.run/tier-0"
    assert (
        note["kueue.x-k8s.io/podset-group-name"] == inner["workerTemplate"]["metadata"]["annotations"]["kueue.x-k8s.io/podset-group-name"]
    )


def test_what_the_files_carry_over_from_the_plan():
    """Limits hold for one data-parallel rank where the engine takes them so, for all of them where it divides them."""
    sglang = next(file.text for file in launched("deepseek_v3_h200", "sglang").files if file.path == "serve.sh")
    for line in ("--tp-size 8", "--dp-size 4", "--max-running-requests 128", "--chunked-prefill-size 32768", "--mem-fraction-static 0.88"):
        assert f"{line} \\\n" in sglang or f"{line}\n" in sglang
    nodes = next(file.text for file in launched("experts-over-nodes", "vllm").files if file.path == "serve.sh")
    assert nodes.count("--max-num-seqs 8 ") == 2
    assert nodes.count("--data-parallel-size-local 8") == 2
    assert "--data-parallel-start-rank 8" in nodes
    assert nodes.count("--headless") == 1
    stages = next(file.text for file in launched("405b_bf16_four_nodes", "vllm").files if file.path == "serve.sh")
    assert stages.count("VLLM_PP_LAYER_PARTITION=65,61") == 2
    assert stages.count("--master-addr h100-01") == 2
    config = next(file.text for file in launched("nvl72_rack", "tensorrt-llm").files if file.path == "reasoning-0.yaml")
    data = yaml.safe_load(config)
    memory = plan_of("nvl72_rack").deployments[0].replicas[0].memory
    held = memory.weights_gib + memory.other_gib
    whole = memory.budget_gib / 0.9
    assert data["kv_cache_config"]["free_gpu_memory_fraction"] == pytest.approx((memory.budget_gib - held) / (whole - held), abs=0.0101)
    assert data["enable_attention_dp"] is True


def test_a_rack_gets_its_imex_channels():
    text = next(file.text for file in launched("tensor-over-trays", "kubernetes").files if file.path == "kubernetes.yaml")
    found = {data["kind"]: data for data in yaml.load_all(text, Loader=yaml.CSafeLoader)}
    claim = found["ComputeDomain"]["spec"]["channel"]["resourceClaimTemplate"]["name"]
    assert found["ComputeDomain"]["spec"]["numNodes"] == 2
    assert found["StatefulSet"]["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == claim

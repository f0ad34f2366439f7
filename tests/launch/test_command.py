"""`planner launch` at the terminal: what it writes, what it refuses, and that nothing hostile comes through."""

from __future__ import annotations

import copy
import json
import shlex
import subprocess

import pytest
import yaml

from planner.cli.app import run
from planner.diagnostics import PlannerError
from planner.launch.directory import LaunchOptions
from planner.launch.launching import TARGETS, launch
from planner.plan.document import PlanDocument
from tests.launch.plans import ROOT, plan_of

HOSTILE = ("$(touch /tmp/x)", "a;b", "a\nb", "../up", "..", "a'b", '"', "-x", "a b", "", "x" * 300)


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(plan_of("two_node_h100").model_dump_json())
    return path


def codes_of(plan, target="vllm", options=None):
    with pytest.raises(PlannerError) as raised:
        launch(plan, target, options)
    return {item.code for item in raised.value.diagnostics}


def changed(name, change):
    data = plan_of(name).model_dump()
    change(data)
    return PlanDocument.model_validate(data)


def test_a_directory_is_written_once(plan_file, tmp_path, capsys):
    folder = tmp_path / "out"
    assert run(["launch", str(plan_file), "--for", "vllm", "-o", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {"README.md", "serve.sh", "placement.yaml"}
    assert folder.joinpath("serve.sh").stat().st_mode & 0o111
    assert "CHECKPOINT_SUBSTITUTED" in capsys.readouterr().err
    assert run(["launch", str(plan_file), "--for", "vllm", "-o", str(folder)]) == 1
    assert "DIRECTORY_NOT_EMPTY" in capsys.readouterr().err
    assert run(["launch", str(plan_file), "--for", "vllm", "-o", str(folder), "--force", "-q"]) == 0


def test_json_lists_the_files_and_holds_them_when_nothing_is_written(plan_file, tmp_path, capsys):
    assert run(["launch", str(plan_file), "--for", "slurm", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format_version"] == 1
    assert {row["path"] for row in document["files"]} == {"README.md", "submit.sh", "launch.sbatch", "placement.yaml"}
    assert all(row["text"] for row in document["files"])
    assert run(["launch", str(plan_file), "--for", "slurm", "--json", "-o", str(tmp_path / "out")]) == 0
    assert all("text" not in row for row in json.loads(capsys.readouterr().out)["files"])


def test_the_script_starts_what_it_says(plan_file, tmp_path, capsys):
    """Run for real with an engine that only says how it was called."""
    model = "/models/it's $HOME; `rm`"
    folder, tools = tmp_path / "out", tmp_path / "tools"
    assert run(["launch", str(plan_file), "--for", "vllm", "-o", str(folder), "--model-path", f"chat={model}", "-q"]) == 0
    capsys.readouterr()
    tools.mkdir()
    tools.joinpath("vllm").write_text('#!/usr/bin/env bash\nprintf "%s\\n" "$CUDA_VISIBLE_DEVICES" "$@"\n')
    tools.joinpath("vllm").chmod(0o755)
    done = subprocess.run(
        ["bash", str(folder / "serve.sh"), "h100-01.cluster.local"],
        env={"PATH": f"{tools}:/usr/bin:/bin", "HOME": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words = folder.joinpath("logs", "chat-0.log").read_text().splitlines()
    assert words[:3] == ["0,1,2,3,4,5,6,7", "serve", model]
    other = subprocess.run(["bash", str(folder / "serve.sh"), "h100-09"], capture_output=True, text=True, timeout=60, check=False)
    assert other.returncode == 1
    assert "puts nothing on h100-09" in other.stderr


def test_a_plan_that_breaks_its_problem_is_refused(tmp_path, capsys):
    path = tmp_path / "plan.json"
    solved = tmp_path / "solved.json"
    assert run(["solve", str(ROOT / "problems/two_node_h100.yaml"), "-o", str(solved), "-q"]) == 0
    problem = str(ROOT / "problems/two_node_h100.yaml")
    assert run(["launch", str(solved), "--for", "vllm", "--problem", problem, "-q"]) == 0
    data = json.loads(solved.read_text())
    data["deployments"][0]["replicas"][0]["memory"]["weights_gib"] /= 2
    path.write_text(json.dumps(data))
    capsys.readouterr()
    assert run(["launch", str(path), "--for", "vllm", "--problem", problem]) == 1
    assert "WEIGHTS_MISMATCH" in capsys.readouterr().err
    assert run(["launch", str(solved), "--for", "vllm", "--problem", problem, "--set", "deployments.chat.headroom=0"]) == 0
    assert run(["launch", str(solved), "--for", "vllm", "--set", "deployments.chat.headroom=0"]) == 1
    assert "PROBLEM_MISSING" in capsys.readouterr().err


@pytest.mark.parametrize("cut", [0, 1, 40, 500, 2000])
def test_half_a_plan_is_no_plan(cut, tmp_path, capsys):
    path = tmp_path / "plan.json"
    path.write_text(plan_of("two_node_h100").model_dump_json()[:cut])
    assert run(["launch", str(path), "--for", "vllm"]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_plan_without_its_limits_is_refused():
    def old(data):
        data["deployments"][0]["replicas"][0]["limits"] = None

    assert codes_of(changed("two_node_h100", old)) == {"PLAN_NOT_LAUNCHABLE"}
    empty = changed("two_node_h100", lambda data: data.update(deployments=()))
    assert codes_of(empty) == {"PLAN_WITHOUT_REPLICAS"}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_refused(text):
    def rename(data):
        data["deployments"][0]["name"] = text

    def move(data):
        for rank in data["deployments"][0]["replicas"][0]["ranks"]:
            rank["node"] = text
        data["nodes"][0]["name"] = text

    assert codes_of(changed("two_node_h100", rename)) == {"LAUNCH_NAME_UNSAFE"}
    assert "NODE_NAME_UNSAFE" in codes_of(changed("two_node_h100", move))
    options = LaunchOptions(namespace=text, queue=text, image=text, topology_level=text)
    assert codes_of(plan_of("two_node_h100"), "kubernetes", options) == {"LAUNCH_VALUE_UNSAFE"}


@pytest.mark.parametrize("model", ["/models/a b", "/m/$(x)", "/m/`x`;y", "/m/'\"", "org/name", "/m/é: [x] #"])
@pytest.mark.parametrize("target", [name for name in TARGETS if name not in {"sglang", "tensorrt-llm"}])
def test_any_path_of_a_model_is_one_word(model, target):
    directory = launch(plan_of("405b_bf16_four_nodes"), target, LaunchOptions(model_paths={"chat": model}))
    text = {file.path: file.text for file in directory.files}
    if target in {"vllm", "slurm"}:
        assert shlex.quote(model) in text["serve.sh" if target == "vllm" else "launch.sbatch"]
    elif target != "ray":
        name = TARGETS[target].readable
        found = json.dumps(list(yaml.load_all(text[name], Loader=yaml.CSafeLoader)))
        assert json.dumps(model)[1:-1] in found
    assert codes_of(plan_of("two_node_h100"), "vllm", LaunchOptions(model_paths={"chat": "a\nb"})) == {"LAUNCH_VALUE_UNSAFE"}


def test_names_that_are_no_dns_labels_say_how_to_rename():
    plan = changed("two_node_h100", lambda data: data["deployments"][0].update(name="Chat_v2.1"))
    for target in ("kubernetes", "leader-worker-set", "dynamo"):
        with pytest.raises(PlannerError) as raised:
            launch(plan, target)
        assert [item.code for item in raised.value.diagnostics] == ["LAUNCH_NAME_NOT_DNS"]
        assert "--name Chat_v2.1=chat-v2-1" in raised.value.diagnostics[0].hint
        assert launch(plan, target, LaunchOptions(names={"Chat_v2.1": "chat"})).files
    assert launch(plan, "vllm").files


def test_checkpoints_that_nobody_knows_are_asked_for():
    def own(data):
        data["deployments"][0]["checkpoint"]["hugging_face"] = None
        data["deployments"][0]["checkpoint"]["weights"] = "fp8"

    assert codes_of(changed("two_node_h100", own)) == {"MODEL_PATH_NEEDED"}

    def other(data):
        data["deployments"][0]["replicas"][0]["shape"]["weights_dtype"] = "nvfp4"

    assert codes_of(changed("two_node_h100", other)) == {"CHECKPOINT_NEEDED"}
    given = LaunchOptions(model_paths={"chat": "/models/own"})
    assert any("/models/own" in file.text for file in launch(changed("two_node_h100", other), "vllm", given).files)

    def cache(data):
        data["deployments"][0]["replicas"][0]["shape"]["kv_dtype"] = "int8"

    assert codes_of(changed("two_node_h100", cache)) == {"FORMAT_NOT_EXPRESSIBLE"}
    assert codes_of(plan_of("two_node_h100"), "vlm") == {"WRONG_CHOICE"}


@pytest.mark.parametrize("count", [48, pytest.param(1000, marks=pytest.mark.thorough)])
def test_many_replicas(count):
    """One file for all of them; each replica on GPUs of its own."""
    data = plan_of("one_node_70b_efficiency").model_dump()
    replica = data["deployments"][0]["replicas"][0]
    replicas, nodes = [], []
    for number in range(count):
        one = copy.deepcopy(replica)
        node = f"node-{number // 4}"
        for place, rank in enumerate(one["ranks"]):
            rank.update(node=node, gpu=2 * (number % 4) + place)
        replicas.append(one)
        if number % 4 == 0:
            nodes.append({**data["nodes"][0], "name": node})
    data["deployments"][0]["replicas"], data["nodes"] = replicas, nodes
    plan = PlanDocument.model_validate(data)
    for target in ("vllm", "kubernetes", "dynamo", "slurm"):
        text = "".join(file.text for file in launch(plan, target).files)
        assert text.count("--tensor-parallel-size") == count

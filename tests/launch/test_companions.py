"""Speculation and adapters are started as they are planned: every target's files carry them, and reading them back finds the same."""

from __future__ import annotations

import json
from functools import cache

import pytest

from planner.diagnostics import PlannerError
from planner.launch.directory import LaunchOptions
from planner.launch.launching import TARGETS, launch
from planner.launch.writing import write_directory
from planner.placement.judge import judge
from planner.placement.kinds import read_placement, read_placement_text
from planner.problem.load import load_problem

TOPOLOGY = {"name": "one", "nodes": [{"name": "node-1", "gpu": "h100-sxm-80gb", "gpus": 8, "price": "$24/h"}]}
DRAFT = {"model": "llama-3.2-1b", "tokens": 4, "acceptance": "70%"}
NGRAM = {"method": "ngram", "tokens": 3, "acceptance": "30%"}
OWN = {"tokens": 2, "acceptance": "80%"}
LORA = {"slots": 4, "rank": 32}
NEWER = "vllm 0.20"


@cache
def problem_of(text, folder):
    path = folder / "problem.json"
    path.write_text(text)
    return load_problem(str(path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("companions")


def asked(folder, engine, model="llama-3.1-8b", **more):
    name, _, version = engine.partition(" ")
    deployment = {
        "name": "chat",
        "model": model,
        "engine": {"name": name, "version": version} if version else name,
        "workload": {"prompt_tokens": 1024, "output_tokens": 128, "concurrency": 8},
        **more,
    }
    return problem_of(json.dumps({"name": "p", "topology": TOPOLOGY, "deployments": [deployment]}), folder)


def planned(problem, ranks="tp: 2\nbatch: 8\nranks: ['node-1:[0-1]']\n"):
    return judge(problem, read_placement_text(ranks, "ranks.yaml", problem)).plan


def told(plan, target, **options):
    with pytest.raises(PlannerError) as caught:
        launch(plan, target, LaunchOptions(**options))
    return {item.code: item.message for item in caught.value.diagnostics}


def text_of(directory):
    return "\n".join(file.text for file in directory.files if file.path != "README.md")


SERVED = [
    (
        NEWER,
        {"speculative": DRAFT},
        '"method": "draft_model", "model": "meta-llama/Llama-3.2-1B", "num_speculative_tokens": 4, "draft_tensor',
    ),
    ("vllm", {"speculative": NGRAM, "lora": LORA}, '"method": "ngram", "num_speculative_tokens": 3'),
    ("vllm", {"lora": LORA}, "--max-lora-rank"),
    ("sglang", {"speculative": DRAFT}, "STANDALONE"),
    ("sglang", {"speculative": NGRAM, "lora": LORA}, "--speculative-ngram-max-bfs-breadth"),
    ("tensorrt-llm", {"speculative": DRAFT, "lora": LORA}, "DraftTarget"),
    ("tensorrt-llm", {"speculative": NGRAM}, "NGram"),
]
OF_ENGINE = {
    "vllm": {"vllm", "kubernetes", "leader-worker-set", "dynamo", "slurm", "ray"},
    "sglang": {"sglang", "kubernetes", "leader-worker-set", "dynamo", "slurm"},
    "tensorrt-llm": {"tensorrt-llm", "kubernetes", "leader-worker-set", "dynamo", "slurm"},
}


@pytest.mark.parametrize(("engine", "more", "word"), SERVED)
def test_every_target_starts_them_and_reading_back_finds_them(engine, more, word, folder, tmp_path):
    problem = asked(folder, engine, **more)
    plan = planned(problem)
    assert plan.deployments[0].speculation is not None or plan.deployments[0].adapters is not None
    for target in OF_ENGINE[engine.partition(" ")[0]]:
        directory = launch(plan, target)
        assert word in text_of(directory).replace('\\"', '"'), target
        readable = TARGETS[target].readable
        if readable is None:
            continue
        write_directory(directory, tmp_path / target)
        read = judge(problem, read_placement(str(tmp_path / target / readable), problem))
        found = {item.code: item.message for item in read.diagnostics}
        assert not {"SETTING_DIFFERS", "FLAG_UNKNOWN", "DRAFT_MODEL_MEMORY"} & set(found), (target, found)
        before, after = plan.deployments[0], read.plan.deployments[0]
        assert (after.speculation, after.adapters) == (before.speculation, before.adapters)
        assert after.replicas[0].times == before.replicas[0].times
        held, wanted = after.replicas[0].memory, before.replicas[0].memory
        assert (held.weights_gib, held.kv_gib) == (wanted.weights_gib, wanted.kv_gib)


@pytest.mark.parametrize(
    ("engine", "word"), [("vllm", '"method": "mtp"'), ("sglang", "--speculative-num-steps 2"), ("tensorrt-llm", "MTP")]
)
def test_layers_of_the_checkpoint_itself_propose(engine, word, folder, tmp_path):
    problem = asked(folder, engine, "deepseek-v3", speculative=OWN)
    directory = launch(planned(problem, "tp: 8\nbatch: 8\nranks: ['node-1:[0-7]']\n"), engine)
    assert word in text_of(directory)
    write_directory(directory, tmp_path / "out")
    read = judge(problem, read_placement(str(tmp_path / "out" / "serve.sh"), problem))
    assert "SETTING_DIFFERS" not in {item.code for item in read.diagnostics}
    assert read.plan.deployments[0].speculation.method == "own-layers"


def test_a_draft_that_is_whole_on_every_rank(folder):
    plan = planned(asked(folder, "vllm 0.9", speculative={**DRAFT, "tp": 1}))
    assert '"draft_tensor_parallel_size": 1' in text_of(launch(plan, "vllm"))
    plan = planned(asked(folder, "vllm 0.9", speculative=DRAFT))
    assert '"draft_tensor_parallel_size": 2' in text_of(launch(plan, "vllm"))


@pytest.mark.parametrize(
    ("engine", "more", "ranks", "word"),
    [
        ("vllm 0.12", {"speculative": DRAFT}, "tp: 2\nbatch: 8\nranks: ['node-1:[0-1]']\n", "a draft model of its own"),
        ("vllm 0.7.2", {"speculative": NGRAM}, "tp: 2\nbatch: 8\nranks: ['node-1:[0-1]']\n", "no --speculative-config"),
        ("vllm 0.12", {"speculative": NGRAM}, "tp: 1\npp: 2\nbatch: 8\nranks: ['node-1:[0-1]']\n", "over 2 stages"),
        (NEWER, {"speculative": {**DRAFT, "tp": 1}}, "tp: 2\nbatch: 8\nranks: ['node-1:[0-1]']\n", "whole on each of 2"),
        ("vllm", {"lora": {"slots": 1, "rank": 24}}, "tp: 2\nbatch: 8\nranks: ['node-1:[0-1]']\n", "--max-lora-rank 24"),
        ("sglang", {"speculative": NGRAM}, "tp: 1\npp: 2\nbatch: 8\nranks: ['node-1:[0-1]']\n", "over 2 stages"),
        ("sglang", {"speculative": {**DRAFT, "tp": 1}}, "tp: 2\nbatch: 8\nranks: ['node-1:[0-1]']\n", "whole on each of 2"),
        ("tensorrt-llm", {"speculative": {**DRAFT, "tp": 1}}, "tp: 2\nbatch: 8\nranks: ['node-1:[0-1]']\n", "whole on each of 2"),
    ],
)
def test_what_an_engine_cannot_be_told_is_refused_by_all_its_targets(engine, more, ranks, word, folder):
    plan = planned(asked(folder, engine, **more), ranks)
    for target in OF_ENGINE[engine.partition(" ")[0]]:
        assert word in told(plan, target).get("COMPANION_NOT_EXPRESSIBLE", ""), target


def test_heads_of_other_kinds_go_by_the_name_of_their_weights(folder):
    plan = planned(asked(folder, "vllm", speculative=DRAFT))
    head = launch(plan, "vllm", LaunchOptions(draft_paths={"chat": "/models/EAGLE3-Llama"}))
    assert '"method": "eagle3", "model": "/models/EAGLE3-Llama"' in text_of(head)
    older = planned(asked(folder, "tensorrt-llm", speculative=DRAFT))
    assert "EAGLE 3" in told(older, "tensorrt-llm", draft_paths={"chat": "yuhuili/EAGLE-LLaMA3"})["COMPANION_NOT_EXPRESSIBLE"]
    pods = launch(planned(asked(folder, "sglang", speculative=DRAFT)), "kubernetes", LaunchOptions(draft_paths={"chat": "/drafts/small"}))
    assert text_of(pods).count("path: /drafts/small") == 1
    assert "mountPath: /drafts/small" in text_of(pods)


def test_a_draft_without_published_weights_needs_its_path(folder, tmp_path):
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 8, "intermediate_size": 1024, "vocab_size": 128256, "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (tmp_path / "draft.json").write_text(json.dumps(config))
    plan = planned(asked(folder, "sglang", speculative={"model": str(tmp_path / "draft.json"), "tokens": 2}))
    assert "nothing says where its weights are" in told(plan, "sglang")["MODEL_PATH_NEEDED"]
    directory = launch(plan, "sglang", LaunchOptions(draft_paths={"chat": "/drafts/own"}))
    assert "--speculative-draft-model-path /drafts/own" in text_of(directory)
    assert "DRAFT_ASSUMED" in {item.code for item in directory.diagnostics}
    plain = planned(asked(folder, "sglang"))
    assert "has no draft" in told(plain, "sglang", draft_paths={"chat": "/drafts/own"})["COMPANION_NOT_PLANNED"]
    assert "DEPLOYMENT_UNKNOWN" in told(plain, "sglang", draft_paths={"other": "/drafts/own"})


COMMAND = (
    "# hosts: node-1\nCUDA_VISIBLE_DEVICES=0,1 vllm serve meta-llama/Meta-Llama-3.1-8B --served-model-name chat -tp 2 --max-model-len 1152 "
)


@pytest.mark.parametrize(
    ("more", "options", "word"),
    [
        ({"speculative": DRAFT}, "", "the command starts none"),
        ({"lora": LORA}, "", "the command makes room for no adapters"),
        ({"lora": LORA}, "--enable-lora --max-loras 4", "4 adapters of rank 16"),
        ({}, "--enable-lora --max-lora-rank 64", "1 adapters of rank 64"),
        (
            {"speculative": DRAFT},
            """--speculative-config '{"method": "ngram", "num_speculative_tokens": 4}'""",
            "the command runs n-grams, 4",
        ),
        (
            {"speculative": DRAFT},
            """--speculative-config '{"method": "draft_model", "model": "meta-llama/Llama-3.2-1B", "num_speculative_tokens": 2}'""",
            "2 tokens at once",
        ),
        (
            {"speculative": DRAFT},
            """--speculative-config '{"method": "draft_model", "model": "meta-llama/Llama-3.2-3B", "num_speculative_tokens": 4}'""",
            "acceptance is not known",
        ),
        ({"speculative": DRAFT}, "--speculative-config {not", "is no JSON mapping"),
    ],
)
def test_a_command_that_starts_something_else_is_told(more, options, word, folder):
    problem = asked(folder, NEWER, **more)
    read = judge(problem, read_placement_text(COMMAND + options + "\n", "serve.sh", problem))
    assert any(word in item.message for item in read.diagnostics if item.code in {"SETTING_DIFFERS", "FLAG_VALUE"}), read.diagnostics


def test_a_command_without_speculation_is_as_slow_as_that(folder):
    problem, plain = asked(folder, NEWER, speculative=DRAFT), asked(folder, NEWER)
    times = [judge(one, read_placement_text(COMMAND, "serve.sh", one)).plan.deployments[0].replicas[0].times for one in (problem, plain)]
    assert times[0] == times[1]


def test_a_plan_that_tells_otherwise_than_the_problem_is_found(folder):
    from planner.audit.audit import audit

    problem = asked(folder, NEWER, speculative=DRAFT, lora=LORA)
    plan = planned(problem)
    own = plan.deployments[0]
    changes = (
        {"speculation": None},
        {"adapters": None},
        {"speculation": own.speculation.model_copy(update={"tokens": 5})},
        {"speculation": own.speculation.model_copy(update={"alone": True})},
        {"speculation": own.speculation.model_copy(update={"hugging_face": "someone/else"})},
        {"adapters": own.adapters.model_copy(update={"rank": 16})},
    )
    for change in ({}, *changes):
        other = plan.model_copy(update={"deployments": (own.model_copy(update=change),)})
        found = {item.code for item in audit(problem.problem, problem.fabric, problem.architectures, other)}
        assert ("COMPANION_MISMATCH" in found) is bool(change), change

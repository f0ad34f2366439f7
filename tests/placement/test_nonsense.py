"""Whatever the text, the answer is a verdict or a list of diagnostics, never a traceback."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.diagnostics import PlannerError
from planner.placement.judge import judge
from planner.placement.kinds import READERS, read_placement_text
from tests.placement.fleet import PROBLEM, load

MANY = settings(max_examples=24, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
KINDS = st.sampled_from([None, *READERS])

NAMES = st.sampled_from(
    ["big", "small", "experts", "nobody", "n1", "n[1-2]", "n1:0", "n1:[0-7]", "n1:[7-0]", "a1:3", "n9", ":", "n1:MIG-3", "", "[", "n[1-"]
)
NUMBERS = st.sampled_from([0, 1, 2, 3, 8, 16, -1, 4096, 10**9, 2.5, True, None, "8", "8k", "inf"])
KEYS = st.sampled_from(
    ["deployment", "deployments", "name", "tp", "pp", "ep", "dp", "degrees", "ranks", "gpus", "replicas", "batch", "partition", "engine", "model",
     "weights", "kv_cache", "max_model_len", "gpu_memory_utilization", "max_num_seqs", "max_batched_tokens", "eager", "draft", "what"]
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(NAMES, NUMBERS, st.sampled_from(["fp8", "vllm", "sglang 0.5", "llama-3.1-8b"])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
WORDS = st.sampled_from(
    ["vllm", "serve", "python", "-m", "sglang.launch_server", "trtllm-serve", "--model", "llama-3.1-8b", "meta-llama/Llama-3.1-405B", "-tp", "--tp", "-pp",
     "--dp", "--data-parallel-size", "--ep-size", "--enable-expert-parallel", "--enable-dp-attention", "--nnodes", "--node-rank", "8", "0", "3", "4097", "-1",
     "0.9", "1.5", "$TP", "--max-model-len", "32k", "--gpu-memory-utilization", "--speculative-config", '{"model": "llama-3.2-1b"}', "{", "'", '"', "\\", "\n", "\\\n",
     ";", "&&", "|", "#", "# hosts: n[1-2]\n", "# degrees: tp8-pp2\n", "# deployment: small\n", "CUDA_VISIBLE_DEVICES=0,2", "CUDA_VISIBLE_DEVICES=MIG-1",
     "VLLM_PP_LAYER_PARTITION=1,2", "srun", "-w", "n[1-2]", "mpirun", "-H", "n1:8,n2:8", "ssh", "n1", "n2 slots=8", "n1:0-3", "--attention-dp"]
)  # fmt: skip
STARTS = st.sampled_from(
    [
        "",
        "vllm serve llama-3.1-8b",
        "# hosts: n[1-4]\nvllm serve llama-3.1-405b -tp 8",
        "python -m sglang.launch_server --model qwen3-30b-a3b --tp 8",
        "srun -w n1,n2 trtllm-serve llama-3.1-8b --tp_size 2",
    ]
)
MANIFEST_KEYS = st.sampled_from(
    ["kind", "metadata", "spec", "leaderWorkerTemplate", "size", "leaderTemplate", "workerTemplate", "containers", "resources", "limits", "requests",
     "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "gpu", "command", "args", "env", "name", "value", "replicas", "services", "multinode", "nodeCount",
     "extraPodSpec", "mainContainer", "nodeSelector", "kubernetes.io/hostname"]
)  # fmt: skip
MANIFEST_VALUES = st.recursive(
    st.one_of(
        NUMBERS,
        st.sampled_from(["LeaderWorkerSet", "DynamoGraphDeployment", "vllm serve llama-3.1-8b -tp 2", "vllm", "serve", "n1", "small"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(MANIFEST_KEYS, inner, max_size=5)),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return load(PROBLEM, tmp_path_factory.mktemp("nonsense"))


def answer(text, loaded, kind):
    """Judge a text; diagnostics are an answer too, and each says something."""
    try:
        judgement = judge(loaded, read_placement_text(text, "placement", loaded, kind))
    except PlannerError as error:
        found = error.diagnostics
    else:
        found = judgement.diagnostics
        assert judgement.plan.model_dump_json()
    assert all(item.code.isupper() and item.message for item in found)
    assert found or judgement.valid


@MANY
@given(text=st.text(max_size=300), kind=KINDS)
def test_any_text(loaded, text, kind):
    """Text without any sense."""
    answer(text, loaded, kind)


@MANY
@given(data=st.dictionaries(KEYS, VALUES, max_size=8), kind=st.sampled_from([None, "yaml"]))
def test_any_keys(loaded, data, kind):
    """The right keys with the wrong values."""
    answer(json.dumps(data), loaded, kind)


@MANY
@given(start=STARTS, words=st.lists(WORDS, max_size=25), kind=st.sampled_from([None, "command", "hostfile"]))
def test_any_command(loaded, start, words, kind):
    """Words of commands and hostfiles in any order."""
    answer(f"{start} {' '.join(words)}", loaded, kind)


@pytest.mark.thorough
@settings(MANY, max_examples=3000)
@given(start=STARTS, words=st.lists(WORDS, max_size=25), data=st.dictionaries(KEYS, VALUES, max_size=8), kind=KINDS)
def test_much_more_nonsense(loaded, start, words, data, kind):
    """The full count, with every reader."""
    answer(f"{start} {' '.join(words)}", loaded, "command")
    answer(json.dumps(data), loaded, "yaml")
    answer(f"{start} {' '.join(words)}", loaded, kind)


@MANY
@given(
    data=st.dictionaries(MANIFEST_KEYS, MANIFEST_VALUES, max_size=6),
    named=st.sampled_from(["LeaderWorkerSet", "DynamoGraphDeployment", "Pod"]),
)
def test_any_manifest(loaded, data, named):
    """Manifests of any shape."""
    answer(json.dumps({**data, "kind": named}), loaded, "lws")


@MANY
@given(
    size=NUMBERS,
    gpus=NUMBERS,
    replicas=NUMBERS,
    words=st.lists(WORDS, max_size=8),
)
def test_any_leader_worker_set(loaded, size, gpus, replicas, words):
    """A LeaderWorkerSet whose counts and command may be anything."""
    container = {"command": ["vllm", "serve", "llama-3.1-8b", *words], "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    template = {"size": size, "workerTemplate": {"spec": {"containers": [container]}}}
    answer(json.dumps({"kind": "LeaderWorkerSet", "spec": {"replicas": replicas, "leaderWorkerTemplate": template}}), loaded, None)


@MANY
@given(
    tp=st.integers(1, 64),
    pp=st.integers(1, 40),
    ep=st.integers(1, 64),
    dp=st.integers(1, 16),
    name=st.sampled_from(["big", "small", "experts"]),
)
def test_any_degrees(loaded, tp, pp, ep, dp, name):
    """Degrees of any size on the fleet as it is."""
    answer(json.dumps({"deployment": name, "tp": tp, "pp": pp, "ep": ep, "dp": dp, "ranks": ["n[1-4]", "a1"]}), loaded, "yaml")

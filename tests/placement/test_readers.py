"""Every form a placement may have, down to the GPU of every rank and the line it stands in."""

from __future__ import annotations

import pytest

from planner.diagnostics import PlannerError, Severity
from planner.placement.kinds import kind_of, read_placement_text
from planner.plan.shape import Degrees
from tests.placement.fleet import PROBLEM, load


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return load(PROBLEM, tmp_path_factory.mktemp("readers"))


def read(text, loaded, **beside):
    return read_placement_text(text, "file", loaded, **beside)


def gpus(replica):
    return [str(gpu) for gpu in replica.gpus]


def codes(proposal):
    return {item.code for item in proposal.diagnostics}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"format_version": 1, "provenance": {}, "deployments": []}', "plan"),
        ("deployment: big\ntp: 8\n", "yaml"),
        ('{"tp": 8, "ranks": ["n1"]}', "yaml"),
        ("{dp: 8, ep: 8, ranks: [n1]}", "yaml"),
        ("#!/bin/sh\nexport A=1\nvllm serve llama-3.1-8b\n", "command"),
        ("docker run --gpus all image \\\n  python3 -m sglang.launch_server --model-path x --tp 8", "command"),
        ("n1\nn1\nn2\n", "hostfile"),
        ("n1 slots=8\nn2 slots=8\n", "hostfile"),
        ("apiVersion: v1\nkind: Service\n---\nkind: LeaderWorkerSet\nmetadata: {name: a}\n", "lws"),
        ("kind: DynamoGraphDeployment\nspec: {}\n", "dynamo"),
    ],
)
def test_the_kind_is_found_from_the_content(text, kind):
    """Without being told."""
    assert kind_of(text, "file") == kind


def test_prose_has_no_kind():
    """Told to be said, with the choices."""
    with pytest.raises(PlannerError) as raised:
        kind_of("Dear colleagues, please deploy it.", "file")
    assert raised.value.diagnostics[0].code == "PLACEMENT_KIND_UNKNOWN"
    assert "hostfile" in raised.value.diagnostics[0].hint


def test_order_of_gpus_is_kept(loaded):
    """`0,2,1,3` is an order, not a set."""
    proposal = read("{deployment: big, tp: 2, pp: 2, ranks: ['n1:0,2,1,3']}", loaded)
    assert gpus(proposal.deployments[0].replicas[0]) == ["n1:0", "n1:2", "n1:1", "n1:3"]


def test_outer_settings_hold_for_inner_parts(loaded):
    """Degrees of the file, of a deployment and of one replica."""
    text = "tp: 2\nbatch: 4\ndeployments:\n  - name: small\n    replicas:\n      - [n3:0, n3:1]\n      - {tp: 1, ranks: [n3:2]}\n"
    replicas = read(text, loaded).deployments[0].replicas
    assert [replica.degrees for replica in replicas] == [Degrees(2), Degrees(1)]
    assert [replica.batch for replica in replicas] == [4, 4]
    assert (replicas[1].gpus[0].place.line, replicas[1].gpus[0].place.column) == (7, 25)


def test_every_fault_of_a_file_at_once(loaded):
    """Unknown keys with the nearest, wrong values, no GPUs."""
    text = "deployment: big\ntp: eight\npartitoin: [1]\nweights: fp7\ngpu_memory_utilization: 1.5\nranks: [n1:x, 3]\n"
    proposal = read(text, loaded)
    assert {"WRONG_TYPE", "UNKNOWN_KEY", "WRONG_VALUE", "GPU_LIST_INVALID", "DEGREES_MISSING"} <= codes(proposal)
    assert any("partition" in item.hint for item in proposal.diagnostics if item.code == "UNKNOWN_KEY")
    assert all(item.place.line for item in proposal.diagnostics)


def test_several_deployments_need_a_name(loaded):
    """The problem has three."""
    assert "DEPLOYMENT_NOT_NAMED" in codes(read("{tp: 8, ranks: [n1]}", loaded))


def test_a_vllm_command_over_two_hosts(loaded):
    """TP fills a host, PP goes over hosts; quotes, continued lines and `=` are read."""
    text = "# hosts: n[1-2]\nvllm serve \\\n  --model='llama-3.1-405b' --tensor_parallel_size=8 \\\n  -pp 2 --max-model-len 32k --kv-cache-dtype fp8_e4m3\n"
    deployment = read(text, loaded).deployments[0]
    assert deployment.name == "big"
    assert deployment.replicas[0].degrees == Degrees(8, 2)
    assert gpus(deployment.replicas[0]) == [f"n{node}:{gpu}" for node in (1, 2) for gpu in range(8)]
    assert deployment.settings.max_model_len == 32_000
    assert deployment.settings.kv_cache == "fp8"
    assert deployment.settings.from_command
    assert deployment.settings.places["pp"].line == 4


def test_data_parallel_is_replicas_without_experts_and_ranks_with_them(loaded):
    """The same flag means two things."""
    dense = read("srun -w n3 vllm serve llama-3.1-8b -dp 2 -tp 2", loaded).deployments[0]
    assert [gpus(replica) for replica in dense.replicas] == [["n3:0", "n3:1"], ["n3:2", "n3:3"]]
    sparse = read("srun -w n3 vllm serve qwen3-30b-a3b -dp 4 -tp 2 --enable-expert-parallel", loaded).deployments[0]
    assert [replica.degrees for replica in sparse.replicas] == [Degrees(2, 1, 8, 4)]


def test_sglang_over_nodes_is_one_launch(loaded):
    """Commands that differ by their node rank start one replica; TP counts the ranks of data-parallel attention."""
    text = "".join(
        f"ssh n{rank + 1} python -m sglang.launch_server --model-path qwen3-30b-a3b --tp 16 --dp-size 16 --enable-dp-attention "
        f"--ep-size 16 --nnodes 2 --node-rank {rank} &\n"
        for rank in range(2)
    )
    deployment = read(text, loaded).deployments[0]
    assert [replica.degrees for replica in deployment.replicas] == [Degrees(1, 1, 16, 16)]
    assert gpus(deployment.replicas[0])[7:9] == ["n1:7", "n2:0"]


def test_a_tensorrt_command_under_mpirun(loaded):
    """Hosts with slots before the engine, devices in the order made visible."""
    text = "export CUDA_VISIBLE_DEVICES=3,2,1,0\nmpirun -n 4 -H n3:4 trtllm-serve llama-3.1-8b --tp_size 4 --max_batch_size 64\n"
    deployment = read(text, loaded).deployments[0]
    assert gpus(deployment.replicas[0]) == ["n3:3", "n3:2", "n3:1", "n3:0"]
    assert deployment.settings.max_num_seqs == 64


def test_unknown_options_and_wrong_values_are_told(loaded):
    """With the nearest name, and a word on variables."""
    proposal = read("srun -w n3 vllm serve llama-3.1-8b --tensor-paralel-size 4 -pp $PP --max-num-seqs many --port 80", loaded)
    told = {item.code: item for item in proposal.diagnostics}
    assert told["FLAG_UNKNOWN"].severity is Severity.WARNING
    assert "--tensor-parallel-size" in told["FLAG_UNKNOWN"].hint
    values = [item.message for item in proposal.diagnostics if item.code == "FLAG_VALUE"]
    assert any("variable $PP" in message for message in values)
    assert any("many" in message for message in values)


def test_another_model_is_refused(loaded):
    """A command for a model nobody asked for, where the file says which deployment it is."""
    proposal = read("# deployment: small\nsrun -w n3 vllm serve qwen3-32b\n", loaded)
    assert "MODEL_MISMATCH" in codes(proposal)


def test_a_hostfile_with_slots_and_one_with_ranks(loaded):
    """Both forms, in the order of the lines."""
    slots = read("# deployment: big\n# degrees: tp8-pp2\nn2 slots=8\nn1 slots=8 # the second\n", loaded).deployments[0].replicas[0]
    assert gpus(slots) == [f"n{node}:{gpu}" for node in (2, 1) for gpu in range(8)]
    assert slots.gpus[8].place.line == 4
    ranks = read("n3\nn4\nn3\nn4\n# deployment: small\n# degrees: tp2", loaded).deployments[0].replicas
    assert [gpus(replica) for replica in ranks] == [["n3:0", "n4:0"], ["n3:1", "n4:1"]]


def test_a_hostfile_with_ranks_left_over(loaded):
    """Five ranks are no multiple of four."""
    assert "GPU_COUNT_MISMATCH" in codes(read("# deployment: small\n" + "n3\n" * 5, loaded, degrees="tp4"))


LWS = """
# hosts: n[1-4]
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        containers:
          - name: worker
            env: [{name: VLLM_PP_LAYER_PARTITION, value: "63,63"}]
            args: ["vllm", "serve", "llama-3.1-405b", "-tp", "8", "-pp", "2"]
            resources: {limits: {nvidia.com/gpu: "GPUS"}}
"""


def test_a_leader_worker_set(loaded):
    """Two groups of two pods, eight GPUs each."""
    proposal = read(LWS.replace("GPUS", "8"), loaded)
    assert proposal.kind == "lws"
    assert not codes(proposal)
    replicas = proposal.deployments[0].replicas
    assert [gpus(replica)[0] for replica in replicas] == ["n1:0", "n3:0"]
    assert gpus(replicas[1])[8] == "n4:0"
    assert replicas[0].partition == (63, 63)


@pytest.mark.parametrize("wrong", ["4", "16"])
def test_pods_with_other_gpus_than_the_degrees_need(wrong, loaded):
    """Too few, or more than a node has: the place is that of the manifest."""
    found = [item for item in read(LWS.replace("GPUS", wrong), loaded).diagnostics if item.code == "GPU_COUNT_MISMATCH"]
    assert found
    assert all(item.place.line for item in found)
    assert any(wrong in item.message for item in found)


def test_a_dynamo_graph(loaded):
    """A frontend is no replica, a multinode worker is one over its nodes."""
    text = """
kind: DynamoGraphDeployment
metadata: {name: graph}
spec:
  services:
    Frontend: {componentType: frontend, replicas: 1}
    Decode:
      componentType: worker
      replicas: 1
      multinode: {nodeCount: 2}
      resources: {limits: {gpu: "8"}}
      extraPodSpec:
        mainContainer:
          command: [sh, -c]
          args: ["python3 -m dynamo.sglang --model-path llama-3.1-405b --tp 8 --pp 2"]
"""
    proposal = read(text, loaded, hosts="n1,n2")
    assert proposal.kind == "dynamo"
    assert not codes(proposal)
    assert [gpus(replica)[8] for replica in proposal.deployments[0].replicas] == ["n2:0"]


def test_hosts_beside_the_file_win(loaded):
    """`--hosts` over the comment."""
    text = "# hosts: n1\n# deployment: small\nvllm serve llama-3.1-8b\n"
    assert gpus(read(text, loaded, hosts="n4").deployments[0].replicas[0]) == ["n4:0"]


def test_without_hosts_free_gpus_are_taken_and_told(loaded):
    """Taken and failed GPUs are not."""
    proposal = read("vllm serve llama-3.1-8b -tp 4 -dp 9", loaded)
    assert "HOSTS_ASSUMED" in codes(proposal)
    taken = {gpu for replica in proposal.deployments[0].replicas for gpu in gpus(replica)}
    assert len(taken) == 36
    assert not taken & {"n4:6", "n4:7"}

"""Target `tensorrt-llm`: `trtllm-serve` with its LLM API configuration; replicas on several nodes are started with mpirun from their first."""

from __future__ import annotations

from collections.abc import Sequence

from planner.diagnostics import Diagnostic
from planner.launch.commands import Command, devices, shell_lines
from planner.launch.directory import LaunchFile, LaunchOptions
from planner.launch.engines import tensorrt_llm
from planner.launch.guide import Step
from planner.launch.node_script import SCRIPT, START_ON_NODE, WAIT_FOR_ALL, Started, by_node, node_case
from planner.launch.replicas import Replica
from planner.launch.yaml_text import yaml_text

ENGINES = ("tensorrt-llm",)


def faults(replicas: Sequence[Replica], _options: LaunchOptions) -> list[Diagnostic]:
    """What TensorRT-LLM cannot be told."""
    return [*(fault for replica in replicas for fault in tensorrt_llm.faults(replica)), *unlike_devices(replicas)]


def files(replicas: Sequence[Replica], _options: LaunchOptions) -> list[LaunchFile]:
    """The script, and the configuration of every replica."""
    lines = [
        "#!/usr/bin/env bash",
        "# Starts the replicas whose first rank is on this node. Run it on the first node of every replica: bash serve.sh [NODE [REPLICA]]",
        "# A replica on several nodes is started by mpirun, which reaches the others by ssh: this directory and TensorRT-LLM are at the same place there.",
        *(f"# {remark}" for remark in REMARKS),
        *START_ON_NODE,
        'cd "$here"',
        'case "$node" in',
    ]
    for node, started in by_node(replicas, lambda _: (0,)).items():
        lines.append(node_case(node))
        for one in started:
            lines += _process(one)
        lines.append("    ;;")
    lines += ['  *) echo "no replica has its first rank on $node" >&2; exit 1 ;;', "esac", *WAIT_FOR_ALL]
    return [LaunchFile(SCRIPT, "\n".join(lines) + "\n", executable=True), *configurations(replicas)]


def configurations(replicas: Sequence[Replica]) -> list[LaunchFile]:
    """LLM API configuration of every replica."""
    return [
        LaunchFile(f"{replica.name}.yaml", f"# LLM API options of {replica.name}\n" + yaml_text(tensorrt_llm.configuration(replica)))
        for replica in replicas
    ]


def _process(one: Started) -> list[str]:
    replica = one.replica
    command = tensorrt_llm.command(replica, f"{replica.name}.yaml")
    visible = devices(one.share, replica.gpu.vendor)
    head = [
        f"    # deployment: {replica.deployment}",
        f"    # replica {replica.number}: {replica.degrees}, batch {replica.shape.batch}, {replica.ranks} ranks",
    ]
    if len(replica.shares) == 1:
        command = Command(command.program, command.options, visible)
        return [*head, f"    # hosts: {one.share.node.name}", *shell_lines(["start", replica.name], command, "    ")]
    hosts = ",".join(f"{share.node.name}:{len(share.gpus)}" for share in replica.shares)
    setting = next(f"{name}={value}" for name, value in visible.items())
    launcher = [
        "start",
        replica.name,
        "mpirun",
        "-n",
        str(replica.ranks),
        "-H",
        hosts,
        "--map-by",
        "slot",
        "-x",
        setting,
        tensorrt_llm.LAUNCHER,
    ]
    return [*head, *shell_lines(launcher, command, "    ")]


def unlike_devices(replicas: Sequence[Replica]) -> list[Diagnostic]:
    """Replicas whose nodes show their ranks different GPUs, which one mpirun cannot tell them."""
    from planner.launch.directory import refusal

    found = []
    for replica in replicas:
        if len({share.gpus for share in replica.shares}) > 1:
            where = f"deployments.{replica.deployment}.replicas.{replica.number}"
            message = "its nodes give GPUs of different numbers, and one mpirun shows all of them the same"
            found.append(refusal("UNEVEN_NODES", message, "launch it with --for slurm, or pin GPUs of the same numbers", where))
    return found


def steps(_replicas: Sequence[Replica], _options: LaunchOptions) -> list[Step]:
    """What to do, in order."""
    return [
        Step("Copy this directory to every node of the table, to the same place, and have TensorRT-LLM and the weights there.", ()),
        Step("On the first node of every replica (mpirun reaches the others by ssh without a password):", (f"bash {SCRIPT}",)),
        Step("When `/health` answers, ask it:", ("curl http://HEAD:PORT/v1/models",)),
    ]


REMARKS = (
    "max_batch_size and max_num_tokens hold for one attention data-parallel rank.",
    "free_gpu_memory_fraction is the share of what weights and buffers leave free, so that the KV cache takes what the plan counts with.",
    "The server calls its model by the name of the checkpoint: trtllm-serve has no option for another.",
)

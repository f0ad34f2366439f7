"""What the pods of a replica run: the engine's command for each share, ranks by the node a pod is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.diagnostics import Diagnostic
from planner.launch.commands import Command, Meeting, quoted
from planner.launch.directory import LaunchOptions, refusal
from planner.launch.engines import sglang, tensorrt_llm, vllm
from planner.launch.pods import metadata, visible
from planner.launch.replicas import Replica
from planner.launch.yaml_text import yaml_text

CONFIG_FOLDER = "/etc/planner"
LEADER = "LWS_LEADER_ADDRESS"
"""Variable in which LeaderWorkerSet tells every pod of a group the address of its leader."""
NODE_NAME = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}


def engine_faults(replicas: Sequence[Replica]) -> list[Diagnostic]:
    """What the engines cannot be told, and replicas of TensorRT-LLM over several pods, which need MPI between them."""
    rules = {"vllm": vllm.faults, "sglang": sglang.faults, "tensorrt-llm": tensorrt_llm.faults}
    found = [fault for replica in replicas for fault in rules[replica.engine.name](replica)]
    for replica in replicas:
        where = f"deployments.{replica.deployment}.replicas.{replica.number}"
        if replica.engine.name == "tensorrt-llm" and len(replica.shares) > 1:
            message = "TensorRT-LLM over several pods needs MPI between them, which this target does not set up"
            found.append(refusal("TARGET_CANNOT", message, "launch it with --for dynamo, --for slurm or --for tensorrt-llm", where))
        if len(replica.nodes) != len(replica.shares):
            message = "two parts of it that start apart are on one node, and pods for both would be bound to it"
            found.append(refusal("TARGET_CANNOT", message, f"launch it with --for {replica.engine.name}", where))
    return found


def pod_command(replica: Replica, number: int, address: str) -> Command:
    """Command of share `number`, whose ranks meet at `address`."""
    meeting = Meeting(address)
    if replica.engine.name == "vllm":
        return vllm.command(replica, number, meeting)
    if replica.engine.name == "sglang":
        return sglang.command(replica, number, meeting)
    return tensorrt_llm.command(replica, f"{CONFIG_FOLDER}/{config_name(replica)}")


def config_name(replica: Replica) -> str:
    """File of the LLM API configuration of a replica."""
    return f"{replica.deployment}-{replica.number}.yaml"


def config_map(replica: Replica, name: str, options: LaunchOptions) -> dict[str, Any]:
    """ConfigMap with the LLM API configuration of a replica."""
    data = {config_name(replica): yaml_text(tensorrt_llm.configuration(replica))}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(f"{name}-config", options), "data": data}


def config_volume(replica: Replica, name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volume and mount of the configuration; none for the other engines."""
    if replica.engine.name != "tensorrt-llm":
        return [], []
    volume = {"name": "config", "configMap": {"name": f"{name}-config"}}
    return [volume], [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}]


def split_words(command: Command) -> tuple[list[str], list[str]]:
    """Words of a command as `command` and `args` of a container."""
    program = list(command.program)
    first = 2 if program[:2] == ["vllm", "serve"] else 1 if program[:1] == ["trtllm-serve"] else len(program)
    return program[:first], [*program[first:], *("=".join(option) for option in command.options)]


def by_node_name(replica: Replica, numbers: Sequence[int], commands: Mapping[int, Command]) -> str:
    """Shell script that starts what belongs on the node a pod is on, for pods that share one template.

    The rank follows from the node's name, so that it is the plan's wherever the scheduler puts which of them.
    """
    lines = ['case "$NODE_NAME" in']
    for number in numbers:
        share, command = replica.shares[number], commands[number]
        setting = " ".join(f"{name}={quoted(value)}" for name, value in {**visible(replica, share), **command.environment}.items())
        words = [*command.program, *("=".join(option) for option in command.options)]
        start = "exec env " + setting if setting else "exec"
        lines += [f"  {share.node.name})", f"    {start} {' '.join(_expanded(word) for word in words)}", "    ;;"]
    return "\n".join([*lines, '  *) echo "the plan puts nothing on $NODE_NAME" >&2; exit 1 ;;', "esac"]) + "\n"


def _expanded(word: str) -> str:
    """A word for the shell of a pod, where `$(NAME)` is written as Kubernetes expands it before the shell sees it."""
    before, variable, after = word.partition(f"$({LEADER})")
    return f'{quoted(before) if before else ""}"$({LEADER})"{quoted(after) if after else ""}' if variable else quoted(word)

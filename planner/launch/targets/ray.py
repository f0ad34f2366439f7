"""Target `ray`: vLLM on Ray, with a placement group for every replica: one bundle a rank, each bound to its node by a resource that only that node has.

The server of a replica is an actor on the first bundle; vLLM takes the placement group it runs in. Ray chooses among the GPUs that its node was started with,
which are those of the plan. vLLM puts the ranks of the server's own node first and orders the other nodes by their addresses.

Source: Ray core documentation, placement groups and custom resources; vLLM 0.12 v1/executor/ray_executor.py and engine/arg_utils.py (get_current_placement_group).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from planner.diagnostics import Diagnostic
from planner.launch.commands import VISIBLE_DEVICES, Meeting
from planner.launch.directory import LaunchFile, LaunchOptions, caution, refusal
from planner.launch.engines import vllm
from planner.launch.guide import Step
from planner.launch.node_script import node_case
from planner.launch.replicas import Replica

ENGINES = ("vllm",)
CLUSTER, SERVE = "ray_node.sh", "serve.py"
RAY_PORT = 6379


def faults(replicas: Sequence[Replica], _options: LaunchOptions) -> list[Diagnostic]:
    """What vLLM on Ray cannot be told."""
    found = [fault for replica in replicas for fault in vllm.companion_faults(replica)]
    for replica in replicas:
        where = f"deployments.{replica.deployment}.replicas.{replica.number}"
        if replica.shape.dp > 1:
            message = "vLLM makes the placement groups of data-parallel ranks itself, wherever Ray has room"
            found.append(refusal("TARGET_CANNOT", message, "launch it with --for vllm", where))
    return found


def cautions(replicas: Sequence[Replica], _options: LaunchOptions) -> list[Diagnostic]:
    """What Ray and vLLM decide by themselves."""
    found = []
    users: dict[str, int] = {}
    for replica in replicas:
        for node in replica.nodes:
            users[node] = users.get(node, 0) + 1
    for replica in replicas:
        where = f"deployments.{replica.deployment}"
        shared = [node for node in replica.nodes if users[node] > 1]
        if shared:
            message = f"Ray chooses which of the plan's GPUs of {shared[0]} each of its {users[shared[0]]} replicas gets"
            found.append(caution("GPU_INDEX_NOT_PINNED", message, "launch it with --for vllm to pin them", where))
        if len(replica.nodes) > 2 or not replica.even:
            message = "vLLM orders the nodes after the first by how many ranks they have and by their addresses"
            found.append(caution("RANK_ORDER_NOT_PINNED", message, "launch it with --for vllm to pin the order", where))
    return found


def files(replicas: Sequence[Replica], _options: LaunchOptions) -> list[LaunchFile]:
    """The script that joins a node to the cluster, and the program that starts the replicas."""
    return [_cluster(replicas), _serve(replicas)]


def resource_of(node: str) -> str:
    """Resource that only one node has."""
    return f"planner-{node}"


def _cluster(replicas: Sequence[Replica]) -> LaunchFile:
    gpus: dict[str, set[int]] = {}
    vendor = {}
    for replica in replicas:
        for share in replica.shares:
            gpus.setdefault(share.node.name, set()).update(share.gpus)
            vendor[share.node.name] = replica.gpu.vendor
    head = replicas[0].head.name
    lines = [
        "#!/usr/bin/env bash",
        "# Joins one node to the Ray cluster with the GPUs that the plan uses there. Run it on every node, the head first: bash ray_node.sh [NODE]",
        "set -euo pipefail",
        'node="${1:-$(hostname)}"',
        'case "$node" in',
    ]
    for node, own in gpus.items():
        role = f"--head --port={RAY_PORT}" if node == head else f"--address={head}:{RAY_PORT}"
        resources = json.dumps({resource_of(node): len(own)})
        setting = f"{VISIBLE_DEVICES.get(vendor[node], 'CUDA_VISIBLE_DEVICES')}={','.join(map(str, sorted(own)))}"
        lines += [node_case(node), f"    {setting} \\", f"      ray start {role} --num-gpus={len(own)} --resources='{resources}'", "    ;;"]
    lines += ['  *) echo "the plan puts nothing on $node" >&2; exit 1 ;;', "esac"]
    return LaunchFile(CLUSTER, "\n".join(lines) + "\n", executable=True)


def _serve(replicas: Sequence[Replica]) -> LaunchFile:
    rows = [_row(replica) for replica in replicas]
    listed = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    return LaunchFile(SERVE, _PROGRAM.replace("@REPLICAS@", f"[\n{listed},\n]"))


def _row(replica: Replica) -> dict[str, Any]:
    command = vllm.command(replica, 0, Meeting(""), ray=True, positional=False)
    address = ["--host=0.0.0.0", f"--port={replica.port}"]
    return {
        "name": replica.name,
        "ranks": [share.node.name for share in replica.shares for _ in share.gpus],
        "environment": {
            **command.environment,
            "VLLM_RAY_BUNDLE_INDICES": ",".join(map(str, range(replica.ranks))),
        },
        "arguments": [*("=".join(words) for words in command.options), *address],
    }


def steps(_replicas: Sequence[Replica], _options: LaunchOptions) -> list[Step]:
    """What to do, in order."""
    return [
        Step("Have vLLM with Ray and the weights on every node of the table, and this directory at the same place.", ()),
        Step("On the first node of the table, then on the others:", (f"bash {CLUSTER}",)),
        Step("On any node of the cluster; it stays and prints when a server ends:", (f"python {SERVE}",)),
        Step("Ask:", ("curl http://HEAD:PORT/v1/models",)),
    ]


_PROGRAM = '''"""Starts the replicas of the plan on a Ray cluster whose nodes were joined with ray_node.sh."""

import os

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

# One entry a replica: the node of every rank in order, the environment and the arguments of its server.
REPLICAS = @REPLICAS@


@ray.remote(num_cpus=0)
class Server:
    """One replica: vLLM's API server, whose workers take the bundles of the placement group that this actor is in."""

    def run(self, arguments, environment):
        os.environ.update(environment)
        import uvloop
        from vllm.entrypoints.openai.api_server import run_server
        from vllm.entrypoints.openai.cli_args import make_arg_parser, validate_parsed_serve_args
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        options = make_arg_parser(FlexibleArgumentParser()).parse_args(arguments)
        validate_parsed_serve_args(options)
        uvloop.run(run_server(options))


def start(replica):
    """Reserve the GPUs of a replica, rank by rank, and start its server on those of the first rank's node."""
    bundles = [{"GPU": 1, "CPU": 1, f"planner-{node}": 1} for node in replica["ranks"]]
    group = placement_group(bundles, strategy="PACK", name=replica["name"])
    ray.get(group.ready())
    place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0, placement_group_capture_child_tasks=True)
    runtime = {"env_vars": replica["environment"]}
    server = Server.options(name=replica["name"], scheduling_strategy=place, runtime_env=runtime).remote()
    return server, server.run.remote(replica["arguments"], replica["environment"])


def main():
    ray.init(address="auto")
    started = {}
    for replica in REPLICAS:
        server, running = start(replica)
        started[running] = (replica["name"], server)
    while started:
        (ended, *_), _rest = ray.wait(list(started))
        name, _server = started.pop(ended)
        try:
            ray.get(ended)
            print(f"{name} ended")
        except ray.exceptions.RayError as error:
            print(f"{name} failed: {error}")


if __name__ == "__main__":
    main()
'''

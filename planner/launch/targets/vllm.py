"""Target `vllm`: one script that starts `vllm serve` on every node, without Ray."""

from __future__ import annotations

from collections.abc import Sequence

from planner.diagnostics import Diagnostic
from planner.launch.commands import Command, Meeting
from planner.launch.directory import LaunchFile, LaunchOptions
from planner.launch.engines import vllm
from planner.launch.guide import Step
from planner.launch.node_script import SCRIPT, node_script
from planner.launch.replicas import Replica

ENGINES = ("vllm",)


def faults(replicas: Sequence[Replica], _options: LaunchOptions) -> list[Diagnostic]:
    """What vLLM cannot be told."""
    return [fault for replica in replicas for fault in vllm.faults(replica)]


def files(replicas: Sequence[Replica], _options: LaunchOptions) -> list[LaunchFile]:
    """The script."""

    def command_of(replica: Replica, number: int) -> Command:
        return vllm.command(replica, number, Meeting(replica.head.name))

    return [node_script(replicas, command_of, REMARKS)]


def steps(_replicas: Sequence[Replica], _options: LaunchOptions) -> list[Step]:
    """What to do, in order."""
    return [
        Step("Copy this directory to every node of the table, to the same place, and have vLLM and the weights there.", ()),
        Step("On every node, the order does not matter (the ranks of a replica wait for each other):", (f"bash {SCRIPT}",)),
        Step("When a replica's log says `Application startup complete`, ask it:", ("curl http://HEAD:PORT/v1/models",)),
    ]


REMARKS = (
    "--max-num-seqs and --max-num-batched-tokens hold for one data-parallel rank; the plan's batch is that of all ranks of a replica.",
    "--gpu-memory-utilization is the share of the GPU's whole memory, what other processes hold on it included.",
)

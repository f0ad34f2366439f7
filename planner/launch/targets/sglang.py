"""Target `sglang`: one script that starts `sglang.launch_server` on every node."""

from __future__ import annotations

from collections.abc import Sequence

from planner.diagnostics import Diagnostic
from planner.launch.commands import Command, Meeting
from planner.launch.directory import LaunchFile, LaunchOptions
from planner.launch.engines import sglang
from planner.launch.guide import Step
from planner.launch.node_script import SCRIPT, node_script
from planner.launch.replicas import Replica

ENGINES = ("sglang",)


def faults(replicas: Sequence[Replica], _options: LaunchOptions) -> list[Diagnostic]:
    """What SGLang cannot be told."""
    return [fault for replica in replicas for fault in sglang.faults(replica)]


def files(replicas: Sequence[Replica], _options: LaunchOptions) -> list[LaunchFile]:
    """The script."""

    def command_of(replica: Replica, number: int) -> Command:
        return sglang.command(replica, number, Meeting(replica.head.name))

    return [node_script(replicas, command_of, REMARKS)]


def steps(_replicas: Sequence[Replica], _options: LaunchOptions) -> list[Step]:
    """What to do, in order."""
    return [
        Step("Copy this directory to every node of the table, to the same place, and have SGLang and the weights there.", ()),
        Step("On every node, the order does not matter (the ranks of a replica wait for each other):", (f"bash {SCRIPT}",)),
        Step("When a replica's log says `The server is fired up`, ask it:", ("curl http://HEAD:PORT/v1/models",)),
    ]


REMARKS = (
    "--tp-size counts the data-parallel attention ranks too; --max-running-requests and --chunked-prefill-size are divided among them.",
    "--mem-fraction-static is the share of the memory free at the start that weights and KV cache take; activations and graphs come on top.",
)

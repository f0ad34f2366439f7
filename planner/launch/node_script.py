"""One shell script for all nodes: run on a node, it starts what the plan puts there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from planner.launch.commands import Command, devices, shell_lines
from planner.launch.directory import LaunchFile
from planner.launch.replicas import Replica, Share

CommandOf = Callable[[Replica, int], Command]

SCRIPT = "serve.sh"


@dataclass(frozen=True, slots=True)
class Started:
    """One process of a node: the replica and which of its shares."""

    replica: Replica
    number: int

    @property
    def share(self) -> Share:
        """The share it runs."""
        return self.replica.shares[self.number]

    @property
    def label(self) -> str:
        """Name of the process: that of the replica, and its node rank where it has several."""
        return self.replica.name if len(self.replica.shares) == 1 else f"{self.replica.name}.{self.number}"


def by_node(replicas: Iterable[Replica], shares: Callable[[Replica], Sequence[int]]) -> dict[str, list[Started]]:
    """Processes of every node, in the order of the plan; `shares` are those of a replica that a process is started for."""
    found: dict[str, list[Started]] = {}
    for replica in replicas:
        for number in shares(replica):
            found.setdefault(replica.shares[number].node.name, []).append(Started(replica, number))
    return found


def node_script(replicas: Sequence[Replica], command_of: CommandOf, remarks: Sequence[str]) -> LaunchFile:
    """`serve.sh`: what each node starts, by its name.

    Parameters
    ----------
    replicas
        Replicas to start.
    command_of
        Command of a share of a replica, without the GPUs it sees.
    remarks
        What is to be known, as comments at the top.
    """
    nodes = by_node(replicas, lambda replica: range(len(replica.shares)))
    lines = [
        "#!/usr/bin/env bash",
        "# Starts what the plan puts on one node. Run it on every node: bash serve.sh [NODE [PROCESS]]",
        "# NODE is this host's name unless given; PROCESS is one of the names below, all of the node's unless given. Logs go to logs/.",
        *(f"# {remark}" for remark in remarks),
        *START_ON_NODE,
        'case "$node" in',
    ]
    for node, started in nodes.items():
        lines.append(node_case(node))
        for one in started:
            lines += _process(one, command_of)
        lines.append("    ;;")
    lines += [f'  *) echo "the plan puts nothing on $node; it uses {_some(list(nodes))}" >&2; exit 1 ;;', "esac", *WAIT_FOR_ALL]
    return LaunchFile(SCRIPT, "\n".join(lines) + "\n", executable=True)


def node_case(node: str) -> str:
    """Pattern of a node in a `case`, with or without the domain behind its name."""
    return f"  {node})" if "." in node else f"  {node} | {node}.*)"


def _process(one: Started, command_of: CommandOf) -> list[str]:
    replica, share = one.replica, one.share
    command = command_of(replica, one.number)
    command = Command(command.program, command.options, {**devices(share, replica.gpu.vendor), **command.environment})
    more = f", node {one.number} of {len(replica.shares)}" if len(replica.shares) > 1 else ""
    return [
        f"    # deployment: {replica.deployment}",
        f"    # hosts: {share.node.name}",
        f"    # replica {replica.number}{more}: {replica.degrees}, batch {replica.shape.batch}, ranks {_range(share.first_rank, len(share.gpus))}",
        *shell_lines(["start", one.label], command, "    "),
    ]


def _range(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}-{first + count - 1}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


START_ON_NODE = (
    "set -euo pipefail",
    'here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)',
    'node="${1:-$(hostname)}"',
    'only="${2:-}"',
    'logs="${LOGS:-$here/logs}"',
    "processes=()",
    "start() {",
    '  local name="$1"',
    "  shift",
    '  if [[ -n "$only" && "$only" != "$name" ]]; then return; fi',
    '  mkdir -p "$logs"',
    '  echo "$name: $logs/$name.log"',
    '  "$@" >"$logs/$name.log" 2>&1 &',
    "  processes+=($!)",
    "}",
    "stop() {",
    '  if ((${#processes[@]})); then kill "${processes[@]}" 2>/dev/null || true; fi',
    "}",
    "trap stop EXIT INT TERM",
    "",
)

WAIT_FOR_ANY = (
    "# The first process that ends takes the others along, so that whoever supervises the script sees it.",
    "wait -n",
)
WAIT_FOR_ALL = ('if ! ((${#processes[@]})); then echo "nothing on $node is called $only" >&2; exit 1; fi', *WAIT_FOR_ANY)

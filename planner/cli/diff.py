"""`planner diff`: what changes from one plan to another."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from planner.cli.console import Common, print_json
from planner.cli.exit_codes import ExitCode
from planner.plan.diff import PlanDifference, ReplicaChange

NO_COMMON = Common()
MOST_SHOWN = 40


def diff(before: str, after: str, /, *, common: Common = NO_COMMON) -> int:
    """Say what changes from one plan to another: which replicas start, stop and move, rank by rank, GPUs and cost.

    Parameters
    ----------
    before
        Plan as `planner solve --json` or `-o` writes it, or `-` for standard input.
    after
        The other plan.
    common
        Options of every command.
    """
    from planner.plan.diff import plan_difference
    from planner.plan.reading import read_plan

    found = plan_difference(read_plan(before), read_plan(after))
    if common.json:
        print_json(found.model_dump(mode="json"))
    else:
        sys.stdout.write("\n".join(difference_lines(found, everything=common.verbose)) + "\n")
    return ExitCode.ANSWERED


def difference_lines(found: PlanDifference, *, everything: bool = False) -> Iterator[str]:
    """Lines that tell a difference: cost, GPUs, then replica by replica (the first of them only, unless `everything`)."""
    from planner.report.current import move_words
    from planner.report.words import money, per_hour, quantity_of

    yield f"{found.before} ({found.status_before}) -> {found.after} ({found.status_after})"
    change = (
        "" if found.cost_change is None else f"   {'+' if found.cost_change >= 0 else '-'}{money(abs(found.cost_change), found.currency)}/h"
    )
    if found.cost_change is not None and found.cost_before:
        change += f" ({found.cost_change / found.cost_before:+.1%})"
    yield f"cost   {per_hour(found.cost_before, found.currency)} -> {per_hour(found.cost_after, found.currency)}{change}"
    yield f"GPUs   {found.gpus_before} -> {found.gpus_after}   {found.gpus_after - found.gpus_before:+d}"
    if found.current is not None:
        yield f"moves  {move_words(found.current, found.currency)}"
    for row in found.deployments:
        counts = [
            f"{count} {word}"
            for count, word in ((row.kept, "kept"), (row.moved, "moved"), (row.started, "started"), (row.stopped, "stopped"))
        ]
        moved = f", {quantity_of(row.ranks_moved, 'rank')} on another GPU" if row.ranks_moved else ""
        yield f"{row.name}   {', '.join(counts)}{moved}"
    shown = found.replicas if everything else found.replicas[:MOST_SHOWN]
    yield from (f"  {_change_words(change)}" for change in shown)
    if len(found.replicas) > len(shown):
        yield f"  ... and {len(found.replicas) - len(shown)} more replicas (all of them with --verbose or --json)"
    for word, nodes in (("opened", found.nodes_opened), ("emptied", found.nodes_emptied)):
        if nodes:
            more = f" and {len(nodes) - 8} more" if len(nodes) > 8 else ""
            yield f"nodes {word}   {', '.join(nodes[:8])}{more}"
    if not found.replicas and found.cost_before == found.cost_after:
        yield "nothing changes"


def _change_words(change: ReplicaChange) -> str:
    """One replica in a line: what happens to it, and where its ranks go."""
    number = change.before if change.after is None else change.after
    head = f"{change.action:<5} {change.deployment} {number}  {change.shape}"
    if change.action == "keep":
        return f"{head}  batch {change.batch_before} -> {change.batch_after}"
    if change.action == "move":
        moves = [f"{move.rank}: {move.before} -> {move.after}" for move in change.ranks]
        return f"{head}  {', '.join(moves[:8])}" + (f" and {len(moves) - 8} more ranks" if len(moves) > 8 else "")
    return f"{head}  {', '.join(_folded([move.after or move.before or '' for move in change.ranks]))}"


def _folded(gpus: list[str]) -> list[str]:
    """GPUs by node: `h100-01:0-7`."""
    by_node: dict[str, list[int]] = {}
    for gpu in gpus:
        node, _, index = gpu.rpartition(":")
        by_node.setdefault(node, []).append(int(index))
    words = []
    for node, indices in by_node.items():
        run = indices == list(range(indices[0], indices[0] + len(indices))) and len(indices) > 1
        words.append(f"{node}:{indices[0]}-{indices[-1]}" if run else f"{node}:{','.join(map(str, indices))}")
    return words

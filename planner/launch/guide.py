"""The README of a launch directory: what runs where, what to do in which order, what to know, and how to check it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.diagnostics import Diagnostic
from planner.launch.commands import quoted
from planner.launch.replicas import Replica
from planner.plan.document import PlanDocument

MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what to do, and the commands."""

    text: str
    commands: tuple[str, ...]


def guide(
    plan: PlanDocument, target: str, replicas: Sequence[Replica], steps: Sequence[Step], known: Sequence[Diagnostic], readable: str | None
) -> str:
    """Text of the README; `readable` is the file that `planner validate` reads back."""
    lines = [f"# {_cell(plan.problem)}: launch with {target}", "", _summary(plan, replicas), "", "## Run", ""]
    for number, step in enumerate(steps, start=1):
        lines.append(f"{number}. {step.text}")
        if step.commands:
            lines += ["", "   ```sh", *(f"   {command}" for command in step.commands), "   ```", ""]
    lines += [
        "",
        "## What runs where",
        "",
        "| replica | model | degrees | batch | head:port | GPUs in rank order |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for replica in replicas[:MOST_ROWS]:
        gpus = ", ".join(f"{share.node.name}:[{','.join(map(str, share.gpus))}]" for share in replica.shares)
        cells = (
            replica.name,
            _cell(replica.checkpoint.model),
            replica.degrees,
            replica.shape.batch,
            f"{replica.head.name}:{replica.port}",
            gpus,
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    if len(replicas) > MOST_ROWS:
        lines += ["", f"... and {len(replicas) - MOST_ROWS} more replicas: see `placement.yaml`."]
    if known:
        lines += ["", "## Know", "", *(f"- {_cell(item.message)}; {_cell(item.hint)} [{item.code}]" for item in known)]
    lines += ["", "## Check", ""]
    if readable is not None:
        lines += [f"`planner validate PROBLEM {quoted(readable)}` reads the placement back and judges it: memory, times, cost, every rule."]
    lines += ["`planner validate PROBLEM placement.yaml` judges the same ranks on the same GPUs, whatever starts them."]
    engines = sorted({f"{replica.engine.title} {replica.engine.version}" for replica in replicas})
    lines += [
        "",
        f"Planned for {' and '.join(engines)}. Plan of problem {plan.provenance.problem_sha256[:12]}, catalog {plan.provenance.catalog_sha256[:12]}.",
    ]
    return "\n".join(lines) + "\n"


def _summary(plan: PlanDocument, replicas: Sequence[Replica]) -> str:
    gpus = sum(replica.ranks for replica in replicas)
    nodes = len({name for replica in replicas for name in replica.nodes})
    cost = "" if plan.cost_per_hour is None else f", {plan.cost_per_hour:.2f} {plan.currency}/h for the whole plan"
    several = "s" if len(replicas) > 1 else ""
    return f"{len(replicas)} replica{several} on {gpus} GPUs of {nodes} node{'s' if nodes > 1 else ''}{cost}."


def _cell(text: str) -> str:
    """Text inside a table or a list: on one line, bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")

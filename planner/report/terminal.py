"""The answer for a person: what to run, where, what it costs, how sure, what else there was and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from planner.plan.document import (
    CheckDocument,
    DeploymentDocument,
    PlanDocument,
    RejectedDocument,
    ReplicaDocument,
    SourceDocument,
)
from planner.report.buckets import bucket_lines
from planner.report.current import change_words, current_lines
from planner.report.grid import grid_text
from planner.report.pareto import pareto_lines
from planner.report.spares import spare_lines
from planner.report.where import where_words
from planner.report.words import (
    NOT_EXAMINED,
    carried_words,
    gap_words,
    gibibytes,
    milliseconds,
    money,
    per_hour,
    percent,
    quantity_of,
    shape_words,
)
from planner.topology.fabric import Fabric

Item = TypeVar("Item")
MOST_ALTERNATIVES = 3
MOST_REJECTED = 6
MOST_NAMED = 4
VERDICT_STYLES = {"ok": "green", "warn": "yellow", "fail": "red", "info": "default"}


def plan_lines(plan: PlanDocument, fabric: Fabric, targets: dict[str, tuple[float | None, float | None, float | None]]) -> Iterator[str]:
    """Lines of the answer, without colours.

    `targets` maps a deployment to what was asked: TPOT [s], TTFT [s], least efficiency [share], each None when not asked.
    """
    yield headline(plan)
    yield ""
    for deployment in plan.deployments:
        yield from deployment_lines(plan, deployment, targets.get(deployment.name, (None, None, None)))
    yield from current_lines(plan)
    if plan.deployments:
        yield "placement"
        for line in grid_text(plan, fabric):
            yield f"  {line}"
        yield ""
    if plan.pareto is not None and plan.status != "infeasible":
        yield from pareto_lines(plan.pareto, plan.currency)
    for title, examined in (("would help, each alone", True), ("not examined", False)):
        items = (item for item in plan.repairs if (item.code != NOT_EXAMINED) is examined)
        if examined and not plan.repairs:
            yield from _listed("in the way", (f"{item.message}; {item.hint}" for item in plan.diagnostics if item.code == "NO_SHAPE"))
        yield from _listed(title, (f"{item.message}: {item.hint} [{item.code}]" for item in items))
    yield from _alternatives(plan)
    yield from _rejected(plan)
    yield from _binding(plan)
    yield from _checks(plan)
    yield from _listed("rests on", (f"{_owner(plan, item.deployment)}{source_line(item)}" for item in plan.sources))


def source_line(item: SourceDocument) -> str:
    """What one figure rests on: measured, derived, from a data sheet or assumed, its error where it was fitted, its source."""
    error = ""
    if item.median_error is not None and item.p90_error is not None:
        error = f", fitted on {item.rows} published rows: median error {percent(item.median_error, 1)}, 90th percentile {percent(item.p90_error, 1)}"
    return f"{item.figure}: {item.basis}{error} ({item.source})"


def headline(plan: PlanDocument) -> str:
    """Status, value, bound and gap in one line."""
    if plan.objective is None:
        words = {"infeasible": "impossible", "unknown": "no answer within the limit"}.get(plan.status, plan.status)
        return f"{plan.problem} · {words}"
    objective = plan.objective
    value, bound = (_in_unit(figure, objective.unit, plan.currency) for figure in (objective.value, objective.bound))
    parts = [f"{plan.problem} · {plan.status}: {value}, bound {bound}, gap {gap_words(objective.gap)}"]
    if objective.name != "cost" and plan.cost_per_hour is not None:
        parts.append(per_hour(plan.cost_per_hour, plan.currency))
    if plan.current is not None and plan.current.moves and plan.cost_per_hour is not None:
        parts.append(f"{per_hour(plan.cost_per_hour, plan.currency)} and {quantity_of(plan.current.moves, 'move')}")
    if plan.stopped_by:
        parts.append(f"stopped by {plan.stopped_by}")
    parts.append("audited")
    return " · ".join(parts)


def _in_unit(value: float, unit: str, currency: str) -> str:
    if unit == "$/h":
        return per_hour(value, currency)
    if unit == "s":
        return milliseconds(value)
    if unit == "of the load":
        return f"{value:,.4g} times the load"
    return f"{value:,.6g} {unit}"


def deployment_lines(
    plan: PlanDocument, deployment: DeploymentDocument, targets: tuple[float | None, float | None, float | None]
) -> Iterator[str]:
    """What one deployment runs, its times against what was asked, and its memory."""
    groups = [(shape, list(replicas)) for shape, replicas in groupby(deployment.replicas, key=lambda replica: replica.shape)]
    width = max(len(name.name) for name in plan.deployments)
    if not groups:
        yield f"{deployment.name:<{width}}   {deployment.model} · unserved"
    for index, (shape, replicas) in enumerate(groups):
        replica = replicas[0]
        name = deployment.name if index == 0 else ""
        gpus = len(replica.ranks) * len(replicas)
        price = None if replica.price_per_hour is None else replica.price_per_hour * len(replicas)
        engine = deployment.engine.name + (f" {deployment.engine.version}" if deployment.engine.version else "")
        parts = [
            deployment.model,
            f"{shape.weights_dtype} weights, {shape.kv_dtype} KV",
            engine,
            f"{shape_words(shape.tp, shape.pp, shape.ep, shape.dp)}, {quantity_of(len(replicas), 'replica')}{change_words(replicas)}",
            f"{gpus} of {plan.gpus_total} GPUs ({shape.gpu}{_on_nodes(replicas, deployment)})",
            per_hour(price, plan.currency),
        ]
        if deployment.usd_per_million_output_tokens is not None and index == 0:
            together = " by all of them" if len(groups) > 1 else ""
            together += " at the load asked" if plan.objective is not None and plan.objective.name == "throughput" else ""
            parts.append(f"{money(deployment.usd_per_million_output_tokens, plan.currency)} per 1M output tokens{together}")
        yield f"{name:<{width}}   {' · '.join(parts)}"
        for line in (*_figures(replica, deployment, targets), *bucket_lines(replicas, deployment.load_unit)):
            yield f"  {line}"
    for line in spare_lines(deployment, plan.currency):
        yield f"  {line}"
    yield ""


def _on_nodes(replicas: Sequence[ReplicaDocument], deployment: DeploymentDocument) -> str:
    """Where a group of replicas is, where another of the same deployment has the same degrees on the same kind of GPU."""
    shape = replicas[0].shape
    alike = {
        one.shape
        for one in deployment.replicas
        if (one.shape.gpu, one.shape.tp, one.shape.pp, one.shape.ep, one.shape.dp) == (shape.gpu, shape.tp, shape.pp, shape.ep, shape.dp)
    }
    elsewhere = any(one.shape == shape and one not in replicas for one in deployment.replicas)
    if len(alike) == 1 and not elsewhere:
        return ""
    nodes = list(dict.fromkeys(rank.node for one in replicas for rank in one.ranks))
    return f" of {nodes[0]}" + (f" and {len(nodes) - 1} more" if len(nodes) > 1 else "")


def _figures(
    replica: ReplicaDocument, deployment: DeploymentDocument, targets: tuple[float | None, float | None, float | None]
) -> Iterator[str]:
    times, memory, shape = replica.times, replica.memory, replica.shape
    tpot, ttft, efficiency = targets
    parts = [("compute", times.compute_s), ("all-reduce", times.tp_comm_s), ("pipeline", times.pp_comm_s)]
    parts += [("expert exchange", times.ep_comm_s), ("fixed", times.fixed_s)]
    shown = " + ".join(f"{name} {seconds * 1e3:.1f}" for name, seconds in parts if seconds > 0)
    asked = _asked(tpot, replica, "tpot_s")
    yield (
        f"time per token   {milliseconds(times.tpot_s)}{asked}   {shown}   overhead {percent(times.overhead)}   "
        f"efficiency {percent(times.efficiency)}" + (f" (asked >= {percent(efficiency)})" if efficiency is not None else "")
    )
    asked = _asked(ttft, replica, "ttft_s")
    waits = f" + waiting {milliseconds(times.queueing_s)}" if times.queueing_s > 0 else ""
    yield (
        f"first token      {milliseconds(times.ttft_s)}{asked}   prefill {milliseconds(times.prefill_compute_s)} + "
        f"communication {milliseconds(times.prefill_comm_s)}{waits}"
    )
    stage = f", stage {memory.stage}" if shape.pp > 1 else ""
    yield (
        f"memory per GPU   weights {gibibytes(memory.weights_gib)} + KV {gibibytes(memory.kv_gib)} + other {gibibytes(memory.other_gib)} "
        f"({gibibytes(memory.other_low_gib)}-{gibibytes(memory.other_high_gib)}) of {gibibytes(memory.budget_gib)} GiB{stage}: "
        f"{gibibytes(memory.free_gib)} free, room for {quantity_of(memory.max_sequences, 'sequence')}"
    )
    if shape.pp > 1:
        yield f"layers           {' + '.join(str(count) for count in shape.partition)} over {shape.pp} stages, bubble {percent(times.bubble, 1)}"
    yield (
        f"throughput       {replica.throughput_tokens_s:,.0f} output tokens/s a replica at batch {shape.batch}; "
        f"{carried_words(deployment.capacity, deployment.load, deployment.load_unit, mixed=len({one.shape for one in deployment.replicas}) > 1)}"
    )


def _asked(target: float | None, replica: ReplicaDocument, figure: str) -> str:
    """What was asked of a time, and the percentile of it where one was asked for."""
    tail = replica.tail
    words = "" if tail is None else f"P{tail.percentile:g} {milliseconds(getattr(tail, figure))}"
    if target is not None:
        words += ("  " if words else "") + f"asked <= {milliseconds(target)}"
    return f"  ({words})" if words else ""


def _alternatives(plan: PlanDocument) -> Iterator[str]:
    yield from _listed(
        "next best",
        (
            f"{_owner(plan, other.deployment)}{shape_words(other.shape.tp, other.shape.pp, other.shape.ep, other.shape.dp)} x "
            f"{other.replicas} on {where_words(plan, other.deployment, other.shape)}, {quantity_of(other.gpus, 'GPU')}  "
            f"{per_hour(other.price_per_hour, plan.currency)}  "
            f"{milliseconds(other.tpot_s)}   {other.reason}"
            for _, other in _first_of_each(((other.deployment, other) for other in plan.alternatives), MOST_ALTERNATIVES)
        ),
    )


def _rejected(plan: PlanDocument) -> Iterator[str]:
    """One line for each reason and GPU type of each deployment: the nearest miss in words, the others by their degrees.

    Where there is no plan because some deployments have no shape, only theirs are listed. Every reason comes before another GPU type of the same.
    """
    possible = {item.deployment for item in plan.alternatives}
    stuck = {item.deployment for item in plan.rejected} - possible if plan.status == "infeasible" else set()
    groups: dict[tuple[str, str, str], list[RejectedDocument]] = {}
    for item in plan.rejected:
        if not stuck or item.deployment in stuck:
            groups.setdefault((item.deployment, item.code, item.shape.gpu), []).append(item)
    times: Counter[tuple[str, str]] = Counter()
    ranked = []
    for (name, code, _), group in groups.items():
        ranked.append((times[name, code], name, group))
        times[name, code] += 1
    shown = _first_of_each([(name, group) for _, name, group in sorted(ranked, key=lambda row: row[0])], MOST_REJECTED)
    names = list(dict.fromkeys(item.deployment for item in plan.rejected))
    title = "nearest misses" if plan.status == "infeasible" else "not possible"
    ordered = sorted(shown, key=lambda row: names.index(row[0]))
    yield from _listed(title, (f"{_owner(plan, name)}{_misses(plan, group)}" for name, group in ordered))


def _misses(plan: PlanDocument, group: list[RejectedDocument]) -> str:
    nearest, *others = group
    shape = nearest.shape
    if len({item.shape.nodes for item in group}) > 1:
        shape = shape.model_copy(update={"nodes": ""})
    first = shape_words(nearest.shape.tp, nearest.shape.pp, nearest.shape.ep, nearest.shape.dp)
    words = dict.fromkeys(shape_words(item.shape.tp, item.shape.pp, item.shape.ep, item.shape.dp) for item in others)
    names = [name for name in words if name != first]
    more = (
        ""
        if not names
        else f"; also {', '.join(names[:MOST_NAMED])}" + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
    )
    return f"{first} on {where_words(plan, nearest.deployment, shape)}: {nearest.message} [{nearest.code}]{more}"


def _binding(plan: PlanDocument) -> Iterator[str]:
    yield from _listed("limited by", (f"{_owner(plan, item.deployment)}{item.message}" for item in plan.binding))


def _checks(plan: PlanDocument) -> Iterator[str]:
    for name, group in groupby(plan.checks, key=lambda check: check.deployment):
        yield from _listed(f"check {name}" if len({check.deployment for check in plan.checks}) > 1 else "check", map(check_line, group))


def check_line(check: CheckDocument) -> str:
    """One step of the checklist with its verdict."""
    return f"{check.step:>2} {check.verdict:<4} {check.name}: {check.message}"


def _listed(title: str, items: Iterator[str]) -> Iterator[str]:
    lines = list(items)
    if not lines:
        return
    yield title
    for line in lines:
        yield f"  {line}"
    yield ""


def _owner(plan: PlanDocument, deployment: str | None) -> str:
    """Name of the deployment before a line, where there is more than one to confuse."""
    names = {item.deployment for item in plan.rejected} | {item.name for item in plan.deployments}
    return f"{deployment}: " if deployment and len(names) > 1 else ""


def _first_of_each(items: Iterable[tuple[str, Item]], most: int) -> list[tuple[str, Item]]:
    """Keep the first `most` items of each name, in order."""
    seen: dict[str, int] = {}
    kept = []
    for name, item in items:
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= most:
            kept.append((name, item))
    return kept


def style_of(line: str) -> str:
    """Rich style of one line of the answer: headings bold, verdicts in their colour."""
    if " · " in line and not line.startswith(" ") and line.endswith("audited"):
        return "bold"
    for verdict, style in VERDICT_STYLES.items():
        if line.lstrip()[2:].lstrip().startswith(f"{verdict} ") and line.lstrip()[:2].strip().isdigit():
            return style
    return "" if line.startswith(" ") else "bold"

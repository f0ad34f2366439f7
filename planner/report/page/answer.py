"""The answer in five lines: what to run, on which GPUs, what it costs, how sure that is, what limits it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from planner.plan.document import DeploymentDocument, PlanDocument, ReplicaDocument
from planner.report.current import current_lines
from planner.report.spares import spare_lines
from planner.report.words import NOT_EXAMINED, gap_words, milliseconds, money, per_hour, percent, quantity_of, shape_words
from planner.topology.host_lists import fold_hosts

MOST_NAMED: Final = 4
MOST_NODES: Final = 12
"""Nodes of one deployment that are named in the answer."""


@dataclass(frozen=True)
class Line:
    """One line of the answer: its question, and what is said, the longer part apart."""

    question: str
    words: str
    more: tuple[str, ...] = ()


def groups_of(deployment: DeploymentDocument) -> list[tuple[ReplicaDocument, int]]:
    """Replicas of one shape as their first and their number."""
    found = [(shape, list(members)) for shape, members in groupby(deployment.replicas, key=lambda replica: replica.shape)]
    return [(members[0], len(members)) for _, members in found]


def shape_of(replica: ReplicaDocument) -> str:
    """Degrees of a replica in words."""
    shape = replica.shape
    return shape_words(shape.tp, shape.pp, shape.ep, shape.dp)


def places_of(replicas: Iterable[ReplicaDocument]) -> str:
    """Nodes and GPUs in words, nodes with the same GPUs folded: `h100-[01-02] GPUs 0-7`."""
    gpus: dict[str, list[int]] = defaultdict(list)
    for replica in replicas:
        for rank in replica.ranks:
            gpus[rank.node].append(rank.gpu)
    alike: dict[str, list[str]] = defaultdict(list)
    for node, indices in gpus.items():
        alike[runs_of(sorted(set(indices)))].append(node)
    return ", ".join(f"{fold_hosts(nodes)} GPU{'' if words.isdigit() else 's'} {words}" for words, nodes in alike.items())


def runs_of(indices: Sequence[int]) -> str:
    """Sorted whole numbers with runs folded: `0-3,6`."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def answer_lines(plan: PlanDocument, *, audited: bool) -> tuple[Line, ...]:
    """The five lines of a plan, or what is wrong where there is none."""
    if not plan.deployments:
        return tuple(_without_plan(plan))
    changed = tuple(" ".join(line.split()) for line in current_lines(plan) if line.strip())
    kept = (Line("Changes", changed[0], changed[1:]),) if changed else ()
    return (_run(plan), _where(plan), *kept, _cost(plan), _sure(plan, audited=audited), _limit(plan))


def _run(plan: PlanDocument) -> Line:
    said = []
    for deployment in plan.deployments:
        for replica, count in groups_of(deployment):
            formats = f"{replica.shape.weights_dtype} weights, {replica.shape.kv_dtype} KV"
            engine = deployment.engine.name + (f" {deployment.engine.version}" if deployment.engine.version else "")
            said.append(
                f"{deployment.name}: {deployment.model} on {engine}, {quantity_of(count, 'replica')} of {shape_of(replica)}, {formats}, "
                f"batch {replica.shape.batch}"
            )
        said += [f"spare: {' '.join(line.split())}" for line in spare_lines(deployment, plan.currency)]
        if not deployment.replicas:
            said.append(f"{deployment.name}: {deployment.model} goes unserved")
    if len(said) == 1:
        return Line("Run", said[0])
    replicas = sum(len(deployment.replicas) for deployment in plan.deployments)
    return Line("Run", f"{quantity_of(len(plan.deployments), 'model')} as {quantity_of(replicas, 'replica')}", tuple(said))


def _where(plan: PlanDocument) -> Line:
    kinds: dict[str, int] = defaultdict(int)
    for deployment in plan.deployments:
        for replica in deployment.replicas:
            kinds[replica.shape.gpu] += len(replica.ranks)
    words = f"{plan.gpus_used} of {plan.gpus_total} GPUs ({', '.join(f'{count} {kind}' for kind, count in kinds.items())})"
    if len(plan.deployments) == 1:
        return Line("On", f"{words}: {places_of(plan.deployments[0].replicas)}")
    return Line("On", words, tuple(f"{item.name}: {_few_places(item.replicas)}" for item in plan.deployments if item.replicas))


def _few_places(replicas: Sequence[ReplicaDocument]) -> str:
    """Places by name where they can be read at a glance, else how many; the map shows the others."""
    nodes = dict.fromkeys(rank.node for replica in replicas for rank in replica.ranks)
    gpus = sum(len(replica.ranks) for replica in replicas)
    return places_of(replicas) if len(nodes) <= MOST_NODES else f"{gpus} GPUs on {len(nodes)} nodes"


def _cost(plan: PlanDocument) -> Line:
    if plan.cost_per_hour is None:
        return Line("Costs", "no price is known: the topology names none")
    per_token = [
        f"{item.name}: {per_hour(item.price_per_hour, plan.currency)}, {money(item.usd_per_million_output_tokens, plan.currency)} per 1M output tokens"
        for item in plan.deployments
        if item.usd_per_million_output_tokens is not None
    ]
    words = per_hour(plan.cost_per_hour, plan.currency)
    if len(per_token) == 1:
        figure = plan.deployments[0].usd_per_million_output_tokens
        return Line("Costs", f"{words}, {money(figure, plan.currency)} per 1M output tokens")
    return Line("Costs", words, tuple(per_token))


def _sure(plan: PlanDocument, *, audited: bool) -> Line:
    objective = plan.objective
    said = []
    if objective is not None:
        bound = per_hour(objective.bound, plan.currency) if objective.unit == "$/h" else _value(objective.bound, objective.unit)
        if objective.gap == 0:
            said.append(f"proved optimal: {_better(objective.name)} {bound}")
        else:
            said.append(f"within {gap_words(objective.gap)} of the best: {_better(objective.name)} {bound}")
    if plan.stopped_by:
        said.append(f"stopped by {plan.stopped_by}")
    said.append("every figure recomputed by the independent audit" if audited else "audited when it was solved")
    return Line("Sure", "; ".join(said), tuple(_errors(plan)))


def _better(objective: str) -> str:
    return {
        "cost": "no plan costs less than",
        "gpus": "no plan uses fewer than",
        "latency": "no plan is faster than",
        "throughput": "no plan serves more than",
    }.get(objective, "the bound is")


def _value(value: float, unit: str) -> str:
    return milliseconds(value) if unit == "s" else f"{value:,.6g} {unit}"


def _errors(plan: PlanDocument) -> Iterator[str]:
    """What the times are worth: the error of what they were fitted on, once each."""
    seen: dict[str, None] = {}
    for item in plan.sources:
        if item.median_error is not None and item.p90_error is not None:
            errors = f"median error {percent(item.median_error, 1)}, 90th percentile {percent(item.p90_error, 1)}"
            seen[f"{item.figure}: fitted on {item.rows} published rows, {errors}"] = None
        elif item.figure.startswith("times"):
            seen[f"{item.figure}: {item.basis} ({item.source})"] = None
    yield from seen


def _limit(plan: PlanDocument) -> Line:
    several = len(plan.deployments) > 1
    said = [f"{item.deployment}: {item.message}" if several and item.deployment else item.message for item in plan.binding]
    said += [words for deployment in plan.deployments if not _bound(plan, deployment) for words in _next_smaller(plan, deployment)]
    if not said:
        return Line("Limited by", "nothing that was asked")
    return Line("Limited by", said[0], tuple(said[1 : 2 * MOST_NAMED]))


def _bound(plan: PlanDocument, deployment: DeploymentDocument) -> bool:
    return any(item.deployment in {None, deployment.name} for item in plan.binding)


def _next_smaller(plan: PlanDocument, deployment: DeploymentDocument) -> Iterator[str]:
    """Why the largest of the smaller shapes on the same GPUs is not possible: what holds a plan that no target binds."""
    sizes = {(replica.shape.gpu, len(replica.ranks)) for replica in deployment.replicas}
    for gpu, size in sorted(sizes):
        smaller = [
            (item.shape.tp * item.shape.pp * item.shape.dp, item)
            for item in plan.rejected
            if item.deployment == deployment.name and item.shape.gpu == gpu and item.shape.tp * item.shape.pp * item.shape.dp < size
        ]
        if smaller:
            # What falls just short of memory or a target says more than what no engine would start.
            gpus, item = min(smaller, key=lambda found: (found[1].shortfall is None, found[1].shortfall or 0.0, -found[0]))
            shape = shape_words(item.shape.tp, item.shape.pp, item.shape.ep, item.shape.dp)
            yield f"{deployment.name}: fewer GPUs do not do, {shape} on {quantity_of(gpus, 'GPU')}: {item.message}"


def _without_plan(plan: PlanDocument) -> Iterator[Line]:
    words = {"infeasible": "impossible as asked", "unknown": "no plan was found within the limit"}.get(plan.status, plan.status)
    yield Line("Answer", words)
    for examined, title, words in ((True, "Would help", "each of these alone"), (False, "Not examined", "these may help or not")):
        items = [item for item in plan.repairs if (item.code != NOT_EXAMINED) is examined]
        if items:
            yield Line(title, words, tuple(f"{item.message}: {item.hint} [{item.code}]" for item in items))
    told = {item.message for item in plan.repairs}
    found = [item for item in plan.diagnostics if item.severity != "note" and item.message not in told]
    for item in found[: 2 * MOST_NAMED]:
        yield Line("Because", item.message, (f"{item.hint} [{item.code}]" if item.hint else f"[{item.code}]",))

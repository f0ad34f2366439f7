"""The verdict on a placement for a person: what is wrong and how to mend it, what it will do, and what the optimum would save."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.diagnostics import Diagnostic, Severity
from planner.placement.judge import Judgement
from planner.plan.diff import PlanDifference
from planner.plan.document import PlanDocument
from planner.report.terminal import deployment_lines
from planner.report.words import milliseconds, money, per_hour, quantity_of

Targets = dict[str, tuple[float | None, float | None, float | None]]
SAME_PRICE = 0.005  # below a cent an hour two plans cost the same


def counts_of(judgement: Judgement) -> dict[Severity, int]:
    """How many errors, warnings and notes there are."""
    return {severity: sum(item.severity is severity for item in judgement.diagnostics) for severity in Severity}


def placement_lines(judgement: Judgement, targets: Targets, *, notes: bool = False) -> Iterator[str]:
    """Lines of the verdict: the headline, everything found with its repair, then the predicted figures of what is placed."""
    plan, proposal = judgement.plan, judgement.proposal
    counts = counts_of(judgement)
    found = ", ".join(quantity_of(counts[kind], kind.value) for kind in (Severity.ERROR, Severity.WARNING))
    verdict = "can run" if judgement.valid else "refused"
    priced = per_hour(plan.cost_per_hour, plan.currency)
    yield f"{plan.problem} · {proposal.file} ({proposal.kind}) · {verdict}: {found} · {quantity_of(plan.gpus_used, 'GPU')} · {priced}"
    yield ""
    for severity, title in ((Severity.ERROR, "wrong"), (Severity.WARNING, "warnings"), (Severity.NOTE, "notes")):
        items = [item for item in judgement.diagnostics if item.severity is severity]
        if items and (notes or severity is not Severity.NOTE):
            yield title
            for item in items:
                yield from _item_lines(item)
            yield ""
    for deployment in plan.deployments:
        if any(replica.times.tpot_s > 0 for replica in deployment.replicas):
            yield from deployment_lines(plan, deployment, targets.get(deployment.name, (None, None, None)))
        else:
            yield f"{deployment.name}   no times can be told for a layout that the model cannot be cut into"
            yield ""


def _item_lines(item: Diagnostic) -> Iterator[str]:
    where = f"{item.place}: " if item.place is not None and str(item.place) else ""
    yield f"  {where}{item.message} [{item.code}]"
    if item.hint:
        yield f"      {item.hint}"


def optimum_lines(judgement: Judgement, optimum: PlanDocument) -> Iterator[str]:
    """What the planner would do instead, and what that saves; the moves themselves are the difference's own lines."""
    plan = judgement.plan
    if not optimum.deployments:
        yield f"optimum   none: the problem is {optimum.status}, whatever the placement"
        return
    word = "optimum" if optimum.status == "optimal" else "best known"
    yield f"{word}   {per_hour(optimum.cost_per_hour, optimum.currency)}, {quantity_of(optimum.gpus_used, 'GPU')}, {_slowest(optimum)}"
    placed, best = plan.cost_per_hour, optimum.cost_per_hour
    if placed is None or best is None or plan.currency != optimum.currency:
        spared = plan.gpus_used - optimum.gpus_used
        yield f"saves     {quantity_of(spared, 'GPU')}" if spared > 0 else "saves     nothing that can be told without prices"
    elif placed - best > SAME_PRICE:
        yield f"saves     {money(placed - best, plan.currency)}/h, {(placed - best) / placed:.0%} of what this placement costs"
    elif not judgement.valid:
        yield f"saves     nothing: it costs {money(best - placed, plan.currency)}/h more than a placement that is refused"
    elif best - placed > SAME_PRICE:
        yield f"saves     nothing by cost: it is dearer by {money(best - placed, plan.currency)}/h and better by the objective asked"
    else:
        yield "saves     nothing: this placement costs as little"


def _slowest(plan: PlanDocument) -> str:
    times = [replica.times.tpot_s for deployment in plan.deployments for replica in deployment.replicas]
    return f"{milliseconds(max(times))} a token" if times else "no times"


def placement_document(
    judgement: Judgement, listed: dict[str, Any], optimum: PlanDocument | None, difference: PlanDifference | None
) -> dict[str, Any]:
    """The verdict as one JSON document; `listed` are the diagnostics as every command writes them."""
    plan = judgement.plan
    counts = counts_of(judgement)
    saves = None
    if optimum is not None and optimum.deployments and plan.cost_per_hour is not None and optimum.cost_per_hour is not None:
        saves = plan.cost_per_hour - optimum.cost_per_hour
    return {
        **listed,
        "kind": judgement.proposal.kind,
        "file": judgement.proposal.file,
        "errors": counts[Severity.ERROR],
        "warnings": counts[Severity.WARNING],
        "placement": plan.model_dump(mode="json"),
        "optimum": None
        if optimum is None
        else optimum.model_dump(mode="json", include={"status", "objective", "cost_per_hour", "gpus_used", "deployments"}),
        "saves_per_hour": saves,
        "difference": None if difference is None else difference.model_dump(mode="json"),
    }

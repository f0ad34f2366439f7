"""The document agrees with itself and answers the question asked: names, loads, finite and non-negative figures, sums."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
from pydantic import BaseModel

from planner.audit.case import Case
from planner.audit.columns import FIGURES, finite_or_huge
from planner.audit.findings import deployment_place, differs, finding
from planner.diagnostics import Diagnostic, Place
from planner.plan.document import DeploymentDocument
from planner.problem.documents import Deployment

# Free memory may be negative in a plan that fits only by the low estimate of the fixed terms; the memory check judges that.
MAY_BE_NEGATIVE = frozenset({"free_gib"})
EMPTY_STATUSES = frozenset({"infeasible", "unknown"})
SUM_TOLERANCE = 1e-6


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every figure or name of the document that cannot be right whatever the physics says."""
    yield from _names(case)
    yield from _figures(case)
    yield from _replica_figures(case)
    yield from _emptiness(case)


def _names(case: Case) -> Iterator[Diagnostic]:
    if case.plan.problem != case.problem.name:
        yield finding(
            "PLAN_OF_ANOTHER_PROBLEM", "problem", f"the plan is for {case.plan.problem}, not {case.problem.name}", "solve this problem"
        )
    counts = Counter(deployment.name for deployment in case.plan.deployments)
    for name, count in counts.items():
        if name not in case.asked:
            yield finding("DEPLOYMENT_UNKNOWN", deployment_place(name), f"nobody asked for a deployment {name}", "leave it out")
        elif count > 1:
            yield finding("DEPLOYMENT_TWICE", deployment_place(name), f"{name} is listed {count} times", "list all its replicas once")
    for index, asked in enumerate(case.problem.deployments):
        if asked.name not in counts and case.plan.status not in EMPTY_STATUSES:
            yield finding("DEPLOYMENT_MISSING", deployment_place(asked.name), f"{asked.name} is asked for and not in the plan", "serve it")
        for answer in case.plan.deployments:
            if answer.name == asked.name:
                yield from _what_runs(asked, case.architectures[index].name, answer)


def _what_runs(asked: Deployment, architecture: str, answer: DeploymentDocument) -> Iterator[Diagnostic]:
    """Compare model and engine of an answer with what was asked."""
    place = deployment_place(asked.name)
    if answer.model not in {asked.model, architecture}:
        yield finding("MODEL_MISMATCH", place, f"the plan serves {answer.model}, asked for is {asked.model}", "serve the model asked for")
    runs, wanted = answer.engine, asked.engine
    if (runs.name, runs.version) != (wanted.name, wanted.version):
        said = " ".join(filter(None, ("the plan runs", runs.name, runs.version)))
        should = " ".join(filter(None, (wanted.name, wanted.version)))
        yield finding("ENGINE_MISMATCH", place, f"{said}, asked for is {should}", "plan for the engine asked for")


def _bad(value: float, name: str) -> str | None:
    if not math.isfinite(value):
        return "is not a finite number"
    if value < 0 and name not in MAY_BE_NEGATIVE:
        return "is negative"
    return None


def _walk(part: BaseModel, path: str) -> Iterator[tuple[str, str, float]]:
    """Every number of a document part as (path, field name, value); replicas are looked at in columns instead."""
    for name in type(part).model_fields:
        value = getattr(part, name)
        here = f"{path}.{name}" if path else name
        if isinstance(value, BaseModel):
            yield from _walk(value, here)
        elif isinstance(value, tuple) and name != "replicas":
            for index, item in enumerate(value):
                if isinstance(item, BaseModel):
                    yield from _walk(item, f"{here}.{getattr(item, 'name', index)}")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield here, name, finite_or_huge(value)


def _figures(case: Case) -> Iterator[Diagnostic]:
    # Rejected shapes and alternatives carry figures of plans not chosen: a negative shortfall there breaks nothing, a NaN does.
    for path, name, value in _walk(case.plan, ""):
        fault = _bad(value, name) if not path.startswith(("rejected", "secondary")) else _bad(abs(value), name)
        if fault:
            yield finding("FIGURE_NOT_VALID", path, f"{name} {fault}: {value}", "write the figure the shape has")


def _replica_figures(case: Case) -> Iterator[Diagnostic]:
    table, missing = case.replicas.figures, case.replicas.missing
    signed = np.array([name.rpartition(".")[2] in MAY_BE_NEGATIVE for name in FIGURES])
    wrong = ~np.isfinite(table) | ((table < 0) & ~signed)
    wrong[:, -missing.shape[1] :] &= ~missing
    for row, column in np.argwhere(wrong):
        name, value = FIGURES[column], float(table[row, column])
        where = Place(path=f"{case.row_place(row).path}.{name}")
        yield finding("FIGURE_NOT_VALID", where, f"{name} {_bad(value, '')}: {value}", "write the figure the shape has")


def _emptiness(case: Case) -> Iterator[Diagnostic]:
    if case.plan.status in EMPTY_STATUSES and case.rows:
        yield finding(
            "STATUS_NOT_HONEST", "status", f"status {case.plan.status} with {len(case.rows)} replicas", "a plan with replicas is feasible"
        )
    totals = case.deployment_sums(case.replicas.figure("capacity"))
    for deployment, total in zip(case.plan.deployments, totals.tolist(), strict=True):
        if differs(deployment.capacity, total, SUM_TOLERANCE):
            yield finding(
                "SUM_MISMATCH",
                deployment_place(deployment.name),
                f"capacity {deployment.capacity:g}, its replicas add up to {total:g}",
                "the capacity of a deployment is the sum of its replicas'",
            )

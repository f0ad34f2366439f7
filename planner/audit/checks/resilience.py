"""Whatever failure domain is lost, the replicas without GPUs in it still serve the share of the load that was asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.checks.document import EMPTY_STATUSES
from planner.audit.failures import touched
from planner.audit.findings import deployment_place, finding
from planner.audit.question import load_asked
from planner.diagnostics import Diagnostic
from planner.problem.documents import Deployment

TOLERANCE = 1e-6


def check(case: Case) -> Iterator[Diagnostic]:
    """Kill the failure domains one at a time; yield one diagnostic for every one whose loss leaves too little."""
    if case.plan.status in EMPTY_STATUSES:
        return
    for index, asked in enumerate(case.problem.deployments):
        if asked.resilience is None:
            continue
        own = case.row_asked == index
        serves = np.where(own, case.replicas.figure("capacity"), 0.0)
        pairs = touched(case, asked.resilience.lose)
        left = serves.sum() - np.bincount(pairs.domain, weights=serves[pairs.replica], minlength=len(pairs.names))
        needed = asked.resilience.keep * _served(case, asked, float(serves.sum()))
        for domain in np.flatnonzero(left < needed * (1 - TOLERANCE)):
            name = f"{asked.resilience.lose} {pairs.names[domain]}"
            message = f"without {name} its replicas serve {left[domain]:g}, {needed:g} must be left"
            yield finding("NOT_RESILIENT", deployment_place(asked.name), message, "place replicas elsewhere, or add one")


def _served(case: Case, asked: Deployment, total: float) -> float:
    """Load of which a share must be left: as asked, without what goes unserved, or what the greatest throughput promises."""
    load = load_asked(asked)[0]
    if case.problem.objective != "throughput" or case.plan.objective is None:
        told = sum(answer.unserved for answer in case.plan.deployments if answer.name == asked.name)
        return load - (told if asked.may_go_unserved else 0.0)
    return min(load * case.plan.objective.value, total)

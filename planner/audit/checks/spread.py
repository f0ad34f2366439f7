"""No failure domain holds more replicas of a deployment than it may."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.failures import touched
from planner.audit.findings import deployment_place, finding
from planner.diagnostics import Diagnostic


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every deployment and domain with too many of its replicas."""
    for index, asked in enumerate(case.problem.deployments):
        if asked.spread is None:
            continue
        pairs = touched(case, asked.spread.over)
        own = case.row_asked[pairs.replica] == index
        counts = np.bincount(pairs.domain[own], minlength=len(pairs.names))
        for domain in np.flatnonzero(counts > asked.spread.most):
            count = int(counts[domain])
            message = f"{count} replicas have GPUs in {asked.spread.over} {pairs.names[domain]}, at most {asked.spread.most} may"
            yield finding("SPREAD_NOT_KEPT", deployment_place(asked.name), message, f"move {count - asked.spread.most} of them away")

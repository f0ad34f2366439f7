"""Each deployment has as many replicas as asked, of one shape where that is asked."""

from __future__ import annotations

from collections.abc import Iterator

from planner.audit.case import Case
from planner.audit.checks.document import EMPTY_STATUSES
from planner.audit.findings import deployment_place, finding
from planner.diagnostics import Diagnostic


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic per deployment and broken limit."""
    if case.plan.status in EMPTY_STATUSES:
        return
    answers = {answer.name: answer for answer in case.plan.deployments}
    for asked in case.problem.deployments:
        limits = asked.replicas
        answer = answers.get(asked.name)
        if limits is None or answer is None:
            continue
        place = deployment_place(asked.name)
        count = len(answer.replicas)
        if limits.min is not None and count < limits.min:
            yield finding("TOO_FEW_REPLICAS", place, f"{count} replicas, at least {limits.min} are asked for", f"add {limits.min - count}")
        if limits.max is not None and count > limits.max:
            yield finding("TOO_MANY_REPLICAS", place, f"{count} replicas, at most {limits.max} are allowed", f"remove {count - limits.max}")
        shapes = {(replica.shape.gpu, replica.shape) for replica in answer.replicas}
        if limits.one_shape and len(shapes) > 1:
            yield finding("SHAPES_DIFFER", place, f"{len(shapes)} different shapes, one is allowed", "run all replicas in one shape")

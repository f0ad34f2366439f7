"""What goes unserved is told, is no less than what is missing, and no more than the deployment allows."""

from __future__ import annotations

from collections.abc import Iterator

from planner.audit.case import Case
from planner.audit.checks.buckets import served
from planner.audit.checks.document import EMPTY_STATUSES
from planner.audit.findings import deployment_place, finding
from planner.audit.question import load_asked
from planner.diagnostics import Diagnostic

TOLERANCE = 1e-6


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every unserved load that is misstated or more than allowed."""
    if case.plan.status in EMPTY_STATUSES or case.problem.objective == "throughput":
        return
    totals = case.deployment_sums(case.replicas.figure("capacity")).tolist()
    answers = {answer.name: (answer, total) for answer, total in zip(case.plan.deployments, totals, strict=True)}
    for asked in case.problem.deployments:
        if asked.name not in answers:
            continue
        answer, total = answers[asked.name]
        load, unit = load_asked(asked)
        if asked.workload.buckets:
            # No bucket makes up for another.
            found = served(asked, answer)
            total = sum(min(found[bucket.title], load * float(bucket.part)) for bucket in asked.workload.buckets)
        missing = max(0.0, load - total)
        slack = TOLERANCE * load
        if not answer.unserved >= missing - slack:
            message = f"{answer.unserved:g} {unit} are said to go unserved, its replicas leave {missing:g} of {load:g}"
            yield finding("UNSERVED_MISMATCH", deployment_place(asked.name), message, f"write {missing:g}")
        allowed = asked.may_go_unserved * load
        if not answer.unserved <= allowed + slack:
            message = f"{answer.unserved:g} of {load:g} {unit} go unserved, at most {allowed:g} may"
            yield finding("LOAD_NOT_COVERED", deployment_place(asked.name), message, "add a replica or a larger shape")

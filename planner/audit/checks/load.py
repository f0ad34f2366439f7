"""Every deployment carries the load asked of it, and no replica claims to carry more than its batch or its throughput.

What serves a load in buckets is looked at by the check of that name.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.checks.document import EMPTY_STATUSES
from planner.audit.columns import FloatArray, finite_or_huge
from planner.audit.findings import deployment_place, differs, finding
from planner.audit.question import SEQUENCES, load_asked
from planner.diagnostics import Diagnostic

TOLERANCE = 1e-6


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every load misread, capacity overstated, and load not covered."""
    answers = {answer.name: answer for answer in case.plan.deployments}
    for asked in case.problem.deployments:
        answer = answers.get(asked.name)
        load, unit = load_asked(asked)
        place = deployment_place(asked.name)
        if answer is None:
            if case.plan.status not in EMPTY_STATUSES and case.problem.objective != "throughput":
                yield finding("LOAD_NOT_COVERED", place, f"nothing serves the {load:g} {unit} asked for", "place replicas of it")
            continue
        if answer.load_unit != unit or differs(answer.load, load, TOLERANCE):
            message = f"the plan counts {answer.load:g} {answer.load_unit}, asked for are {load:g} {unit}"
            yield finding("LOAD_MISMATCH", place, message, "plan for the load asked, headroom included")
    yield from _capacities(case)
    if case.problem.objective != "throughput":
        yield from _coverage(case)


def _carries(case: Case) -> FloatArray:
    """What each replica carries by its batch, or by its throughput where the load is a rate [replicas]."""
    batches = [finite_or_huge(case.rows[row].document.shape.batch) for row in case.replicas.shape_rows.tolist()]
    units = [load_asked(asked)[1] for asked in case.problem.deployments]
    by_batch = np.array([unit == SEQUENCES for unit in units] + [False])[case.row_asked]
    return np.where(by_batch, np.array(batches, dtype=np.float64)[case.replicas.shape], case.replicas.figure("throughput_tokens_s"))


def _capacities(case: Case) -> Iterator[Diagnostic]:
    claimed, carries = case.replicas.figure("capacity"), _carries(case)
    in_buckets = np.array([bool(asked.workload.buckets) for asked in case.problem.deployments] + [True])[case.row_asked]
    agrees = np.isclose(claimed, carries, rtol=TOLERANCE, atol=0.0) | in_buckets
    for index in np.flatnonzero(~agrees):
        yield finding(
            "CAPACITY_MISMATCH",
            case.row_place(index),
            f"capacity {claimed[index]:g} is claimed, the replica carries {carries[index]:g}",
            "a replica carries its batch, or its throughput when the load is a rate",
        )


def _coverage(case: Case) -> Iterator[Diagnostic]:
    totals = case.deployment_sums(np.minimum(_carries(case), case.replicas.figure("capacity")))
    carried = {answer.name: total for answer, total in zip(case.plan.deployments, totals.tolist(), strict=True)}
    for asked in case.problem.deployments:
        load, unit = load_asked(asked)
        total = carried.get(asked.name)
        # What may go unserved is judged by the check of that rule.
        if total is not None and not asked.may_go_unserved and not asked.workload.buckets and not total >= load * (1 - TOLERANCE):
            message = f"its replicas carry {total:g} of {load:g} {unit}: {load - total:g} missing"
            yield finding("LOAD_NOT_COVERED", deployment_place(asked.name), message, "add a replica or a larger shape")

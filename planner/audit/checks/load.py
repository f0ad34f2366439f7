"""Every deployment carries the load asked of it, and no replica claims to carry more than its batch or its throughput."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.audit.case import Case
from planner.audit.checks.document import EMPTY_STATUSES
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
        carried = []
        for number, replica in enumerate(answer.replicas):
            carries = float(replica.shape.batch) if unit == SEQUENCES else replica.throughput_tokens_s
            carried.append(min(carries, replica.capacity))
            if differs(replica.capacity, carries, TOLERANCE):
                basis = "its batch is" if unit == SEQUENCES else "its throughput is"
                yield finding(
                    "CAPACITY_MISMATCH",
                    deployment_place(asked.name, number),
                    f"capacity {replica.capacity:g} {unit} is claimed, {basis} {carries:g}",
                    "a replica carries its batch, or its throughput when the load is a rate",
                )
        total = math.fsum(carried)
        short = total < load * (1 - TOLERANCE)
        if short and case.problem.objective != "throughput":
            message = f"its {len(answer.replicas)} replicas carry {total:g} of {load:g} {unit}: {load - total:g} missing"
            yield finding("LOAD_NOT_COVERED", place, message, "add a replica or a larger shape")

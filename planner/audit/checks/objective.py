"""Totals are sums, the objective's value follows from the plan, its gap from value and bound, and the status claims no more than that."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.audit.case import Case
from planner.audit.checks.buckets import served
from planner.audit.checks.document import EMPTY_STATUSES
from planner.audit.findings import differs, finding
from planner.audit.money import replica_prices
from planner.audit.question import load_asked
from planner.audit.running import kept_rows, move_price
from planner.audit.spare_gpus import with_spares
from planner.diagnostics import Diagnostic
from planner.plan.document import ObjectiveDocument

TOLERANCE = 1e-6
# Figures are rounded against the plan before they are solved: money to 1e-6 an hour and shares to 1e-6 per replica, times to 1e-9 s.
ROUNDING = {"cost": 1e-6, "throughput": 1e-6, "latency": 1e-9, "gpus": 0.0}
# "Optimal" means that the gap closes, up to the rounding of figures that are printed with it.
CLOSED = 1e-9


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every total, value, bound or gap that does not follow."""
    plan = case.plan
    if plan.gpus_used != len(case.site):
        yield finding(
            "SUM_MISMATCH", "gpus_used", f"{plan.gpus_used} GPUs are claimed, {len(case.site)} ranks are placed", "count the ranks"
        )
    objective = plan.objective
    if objective is None:
        if plan.status not in EMPTY_STATUSES:
            yield finding("STATUS_NOT_HONEST", "status", f"status {plan.status} without an objective", "state value and bound")
        return
    if plan.status in EMPTY_STATUSES:
        yield finding("STATUS_NOT_HONEST", "status", f"status {plan.status} with an objective value", "a plan with a value is feasible")
        return
    if objective.name != case.problem.objective:
        message = f"the plan optimises {objective.name}, asked for is {case.problem.objective}"
        yield finding("OBJECTIVE_MISMATCH", "objective.name", message, "optimise what is asked")
        return
    value = _value(case)
    rounding = ROUNDING[objective.name] * (1 + len(case.site))
    if value is not None and differs(objective.value, value, TOLERANCE, rounding):
        message = f"{objective.name} {objective.value:.9g} is claimed, the plan's is {value:.9g}"
        yield finding("OBJECTIVE_MISMATCH", "objective.value", message, "recompute the value from the plan")
    yield from _bound(objective, rounding)
    yield from _status(case, objective)


def _value(case: Case) -> float | None:
    """Value of the objective recomputed from the plan; None where a figure it needs is missing."""
    name = case.problem.objective
    if name == "gpus":
        return float(len(with_spares(case).site))
    if name == "latency":
        return max((row.document.times.tpot_s for row in case.rows), default=None)
    if name == "throughput":
        return _served_share(case)
    prices = replica_prices(with_spares(case))
    if prices is None:
        return None
    moves = sum(not stays for stays in kept_rows(case)) * move_price(case) if case.problem.current is not None else 0.0
    return math.fsum([*prices, moves])


def _served_share(case: Case) -> float:
    """Least share of its load that a deployment is served; the stated loads say in which proportion load is wanted."""
    answers = {answer.name: answer for answer in case.plan.deployments}
    shares = []
    for asked in case.problem.deployments:
        answer = answers.get(asked.name)
        load = load_asked(asked)[0]
        if asked.workload.buckets:
            found = {} if answer is None else served(asked, answer)
            shares += [found.get(bucket.title, 0.0) / (load * float(bucket.part)) for bucket in asked.workload.buckets]
            continue
        carried = 0.0 if answer is None else math.fsum(replica.capacity for replica in answer.replicas)
        shares.append(carried / load)
    return min(shares)


def _bound(objective: ObjectiveDocument, rounding: float) -> Iterator[Diagnostic]:
    value, bound = objective.value, objective.bound
    excess = value - bound if objective.name == "throughput" else bound - value
    if excess > rounding + TOLERANCE * abs(value):
        side = "below" if objective.name == "throughput" else "above"
        yield finding(
            "BOUND_NOT_VALID", "objective.bound", f"bound {bound:.9g} lies {side} the value {value:.9g}", "no plan beats its bound"
        )
    gap = 0.0 if value == bound else abs(value - bound) / abs(value) if value else math.inf
    if differs(objective.gap, gap, TOLERANCE, TOLERANCE):
        message = f"gap {objective.gap:.6g} is claimed, value and bound give {gap:.6g}"
        yield finding("GAP_MISMATCH", "objective.gap", message, "gap = |value - bound| / |value|")


def _status(case: Case, objective: ObjectiveDocument) -> Iterator[Diagnostic]:
    if case.plan.status != "optimal":
        return
    value, bound = objective.value, objective.bound
    if abs(value - bound) > CLOSED * max(1.0, abs(value)):
        message = f"called optimal with a gap of {abs(value - bound):.6g} between value and bound"
        yield finding("STATUS_NOT_HONEST", "status", message, "call it feasible and state the gap")
    if case.plan.stopped_by is not None:
        yield finding(
            "STATUS_NOT_HONEST", "status", f"called optimal, though the search was stopped by {case.plan.stopped_by}", "call it feasible"
        )

"""The plan stays within the money and the GPUs it may use."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.findings import finding
from planner.audit.money import replica_prices
from planner.audit.spare_gpus import with_spares
from planner.catalog.gpus import gpu
from planner.diagnostics import Diagnostic

# Prices are sums of floating-point numbers: a budget that is met to the cent is met.
TOLERANCE = 1e-9


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every limit that is exceeded."""
    case = with_spares(case)
    budget = case.problem.budget
    if budget is None:
        return
    if budget.per_hour is not None:
        prices = replica_prices(case)
        spent = case.plan.cost_per_hour if prices is None else float(prices.sum())
        if spent is not None and spent > budget.per_hour * (1 + TOLERANCE):
            message = f"the plan costs {spent:.6g} an hour, the budget is {budget.per_hour:.6g}: {spent - budget.per_hour:.6g} too much"
            yield finding("BUDGET_EXCEEDED", "cost_per_hour", message, "use fewer or cheaper GPUs, or raise the budget")
    known = case.site[case.site >= 0]
    used = np.bincount(case.sites.pool[known], minlength=len(case.fabric.pools))
    for name, limit in (budget.gpus or {}).items():
        wanted = gpu(name).name
        count = sum(int(used[pool.index]) for pool in case.fabric.pools if pool.gpu.name == wanted)
        if count > limit:
            message = f"{count} GPUs of type {wanted} are used, {limit} are allowed"
            yield finding("GPU_BUDGET_EXCEEDED", "gpus_used", message, f"free {count - limit} of them, or use another type")

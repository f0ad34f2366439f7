"""Prices are the topology's: of each replica, of each deployment, and of the whole plan."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.columns import PRICE
from planner.audit.findings import deployment_place, differs, finding
from planner.audit.money import replica_prices, unpriced_pools
from planner.audit.spare_gpus import with_spares
from planner.diagnostics import Diagnostic, Place

TOLERANCE = 1e-6


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every price that is not what the GPUs used cost."""
    case = with_spares(case)
    if case.plan.currency != case.fabric.currency:
        yield finding("CURRENCY_MISMATCH", "currency", f"the plan counts in {case.plan.currency}", f"prices are in {case.fabric.currency}")
    if case.plan.cost_per_hour is not None:
        for pool in unpriced_pools(case):
            message = f"{pool.gpu.name} has no price, the plan still claims {case.plan.cost_per_hour:g} an hour"
            yield finding("PRICE_UNKNOWN", "cost_per_hour", message, "give the nodes a price in the topology")
    prices = replica_prices(case)
    if prices is None:
        return
    claimed, missing = case.replicas.figure("price_per_hour"), case.replicas.missing[:, PRICE]
    agrees = np.isclose(claimed, prices, rtol=TOLERANCE, atol=0.0) & ~missing
    for index in np.flatnonzero(~agrees):
        said = None if missing[index] else float(claimed[index])
        yield from _compare(case.row_place(index), said, float(prices[index]), "this replica's GPUs cost")
    spent = case.deployment_sums(prices)
    for deployment, price in zip(case.plan.deployments, spent.tolist(), strict=True):
        if deployment.replicas:
            yield from _compare(deployment_place(deployment.name), deployment.price_per_hour, price, "its replicas cost")
    yield from _compare(Place(path="cost_per_hour"), case.plan.cost_per_hour, float(spent.sum()), "the GPUs in use cost")


def _compare(place: Place, claimed: float | None, price: float, words: str) -> Iterator[Diagnostic]:
    if claimed is None:
        yield finding("PRICE_MISMATCH", place, f"no price is given, {words} {price:.6g} an hour", f"write {price:.6g}")
    elif differs(claimed, price, TOLERANCE):
        yield finding("PRICE_MISMATCH", place, f"{claimed:.6g} an hour is claimed, {words} {price:.6g}", f"write {price:.6g}")

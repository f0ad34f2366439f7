"""Prices are the topology's: of each replica, of each deployment, and of the whole plan."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.audit.case import Case
from planner.audit.findings import deployment_place, differs, finding
from planner.audit.money import replica_prices, unpriced_pools
from planner.diagnostics import Diagnostic, Place

TOLERANCE = 1e-6


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every price that is not what the GPUs used cost."""
    if case.plan.currency != case.fabric.currency:
        yield finding("CURRENCY_MISMATCH", "currency", f"the plan counts in {case.plan.currency}", f"prices are in {case.fabric.currency}")
    if case.plan.cost_per_hour is not None:
        for pool in unpriced_pools(case):
            message = f"{pool.gpu.name} has no price, the plan still claims {case.plan.cost_per_hour:g} an hour"
            yield finding("PRICE_UNKNOWN", "cost_per_hour", message, "give the nodes a price in the topology")
    prices = replica_prices(case)
    if prices is None:
        return
    position = 0
    total = 0.0
    for deployment in case.plan.deployments:
        own = prices[position : position + len(deployment.replicas)]
        for number, (replica, price) in enumerate(zip(deployment.replicas, own, strict=True)):
            yield from _compare(deployment_place(deployment.name, number), replica.price_per_hour, float(price), "this replica's GPUs cost")
        position += len(deployment.replicas)
        spent = math.fsum(own)
        total += spent
        if deployment.replicas:
            yield from _compare(deployment_place(deployment.name), deployment.price_per_hour, spent, "its replicas cost")
    if case.rows:
        yield from _compare(Place(path="cost_per_hour"), case.plan.cost_per_hour, total, "the GPUs in use cost")


def _compare(place: Place, claimed: float | None, price: float, words: str) -> Iterator[Diagnostic]:
    if claimed is None:
        yield finding("PRICE_MISMATCH", place, f"no price is given, {words} {price:.6g} an hour", f"write {price:.6g}")
    elif differs(claimed, price, TOLERANCE):
        yield finding("PRICE_MISMATCH", place, f"{claimed:.6g} an hour is claimed, {words} {price:.6g}", f"write {price:.6g}")

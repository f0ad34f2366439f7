"""Dollars per million tokens follow from the price, the throughput and the load."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.columns import PER_MILLION, PRICE
from planner.audit.findings import deployment_place, differs, finding
from planner.audit.question import SEQUENCES, load_asked
from planner.diagnostics import Diagnostic, Place

TOLERANCE = 1e-6
SECONDS_PER_HOUR = 3600


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every price per million tokens that does not follow."""
    replicas = case.replicas
    prices, tokens = replicas.figure("price_per_hour"), replicas.figure("throughput_tokens_s")
    claimed = replicas.figure("usd_per_million_output_tokens")
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = prices / tokens / SECONDS_PER_HOUR * 1e6
    neither = replicas.missing[:, PRICE] & replicas.missing[:, PER_MILLION]
    for index in np.flatnonzero(~np.isclose(claimed, expected, rtol=TOLERANCE, atol=0.0) & ~neither):
        said = None if replicas.missing[index, PER_MILLION] else float(claimed[index])
        right = None if replicas.missing[index, PRICE] else float(expected[index])
        yield from _compare(case.row_place(index), said, right, "at its full batch")
    capacity, most = case.deployment_sums(replicas.figure("capacity")), case.deployment_sums(tokens)
    for number, deployment in enumerate(case.plan.deployments):
        asked = case.asked.get(deployment.name)
        if asked is not None and deployment.replicas:
            served = tokens_served(float(most[number]), float(capacity[number]), *load_asked(case.problem.deployments[asked]))
            if case.problem.deployments[asked].workload.buckets:
                served = math.fsum(item.fraction * item.throughput_tokens_s for replica in deployment.replicas for item in replica.buckets)
            right = per_million(deployment.price_per_hour, served)
            yield from _compare(deployment_place(deployment.name), deployment.usd_per_million_output_tokens, right, "at the load asked")


def per_million(price_per_hour: float | None, tokens_per_second: float) -> float | None:
    """Price of a million tokens; None without a price, infinite without tokens."""
    if price_per_hour is None:
        return None
    return price_per_hour * 1e6 / (tokens_per_second * SECONDS_PER_HOUR) if tokens_per_second > 0 else math.inf


def tokens_served(most: float, capacity: float, load: float, unit: str) -> float:
    """Output tokens/s at the load asked; a closed loop keeps its share of the sequences the replicas hold busy."""
    if unit != SEQUENCES:
        return min(load, most)
    return most * min(1.0, load / capacity) if capacity > 0 else 0.0


def _compare(place: Place, claimed: float | None, expected: float | None, words: str) -> Iterator[Diagnostic]:
    if claimed is None and expected is None:
        return
    if claimed is None or expected is None or differs(claimed, expected, TOLERANCE):
        said = "nothing" if claimed is None else f"{claimed:.6g}"
        right = "unknown" if expected is None else f"{expected:.6g}"
        yield finding(
            "COST_PER_TOKEN_MISMATCH",
            place,
            f"{said} per million output tokens is claimed, it is {right} {words}",
            "divide the price by the tokens",
        )

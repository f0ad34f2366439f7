"""Dollars per million tokens follow from the price, the throughput and the load."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.audit.case import Case
from planner.audit.findings import deployment_place, differs, finding
from planner.audit.question import SEQUENCES, load_asked
from planner.diagnostics import Diagnostic, Place
from planner.plan.document import DeploymentDocument

TOLERANCE = 1e-6
SECONDS_PER_HOUR = 3600


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every price per million tokens that does not follow."""
    questions = {asked.name: asked for asked in case.problem.deployments}
    for deployment in case.plan.deployments:
        for number, replica in enumerate(deployment.replicas):
            place = deployment_place(deployment.name, number)
            expected = per_million(replica.price_per_hour, replica.throughput_tokens_s)
            yield from _compare(place, replica.usd_per_million_output_tokens, expected, "at its full batch")
        asked = questions.get(deployment.name)
        if asked is not None and deployment.replicas:
            load, unit = load_asked(asked)
            expected = per_million(deployment.price_per_hour, _tokens_served(deployment, load, unit))
            yield from _compare(deployment_place(deployment.name), deployment.usd_per_million_output_tokens, expected, "at the load asked")


def per_million(price_per_hour: float | None, tokens_per_second: float) -> float | None:
    """Price of a million tokens; None without a price, infinite without tokens."""
    if price_per_hour is None:
        return None
    return price_per_hour * 1e6 / (tokens_per_second * SECONDS_PER_HOUR) if tokens_per_second > 0 else math.inf


def _tokens_served(deployment: DeploymentDocument, load: float, unit: str) -> float:
    """Output tokens/s at the load asked; a closed loop keeps its share of the sequences the replicas hold busy."""
    most = math.fsum(replica.throughput_tokens_s for replica in deployment.replicas)
    if unit != SEQUENCES:
        return min(load, most)
    held = math.fsum(replica.capacity for replica in deployment.replicas)
    return most * min(1.0, load / held) if held > 0 else 0.0


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

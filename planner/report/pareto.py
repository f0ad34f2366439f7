"""The front of money against latency as a table."""

from __future__ import annotations

from collections.abc import Iterator

from planner.plan.document import ParetoDocument, ParetoPointDocument
from planner.report.words import gap_words, milliseconds, per_hour, quantity_of, shape_words

TIMES = {"tpot": "time per token", "ttft": "time to first token"}
HEAD = ("cost", "time per token", "first token", "GPUs", "proof", "plan")


def pareto_lines(front: ParetoDocument, currency: str) -> Iterator[str]:
    """Lines of the front, the cheapest plan first."""
    against = "cost" if front.money == "cost" else "GPUs"
    proved = all(point.proof == "optimal" for point in front.points)
    if not front.points:
        yield f"{against} against {TIMES[front.by]}: no plan serves the stated loads" + ("" if front.complete else " within the limit")
        yield ""
        return
    promise = "no plan is as fast and cheaper, or as cheap and faster" if proved and front.complete else "not all of them proved"
    limit = "" if front.complete else ", stopped before all were found"
    yield f"{against} against {TIMES[front.by]}: {quantity_of(len(front.points), 'plan')}, audited; {promise}{limit}"
    rows = [HEAD, *(_row(point, currency) for point in front.points)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""


def _row(point: ParetoPointDocument, currency: str) -> tuple[str, ...]:
    plans = [
        f"{item.deployment}: {item.replicas} x {shape_words(item.shape.tp, item.shape.pp, item.shape.ep, item.shape.dp)} "
        f"on {item.shape.gpu} at batch {item.shape.batch}"
        for item in point.shapes
    ]
    proof = "proved" if point.proof == "optimal" else f"gap {gap_words(point.gap)}" if point.gap else "not proved"
    return (
        per_hour(point.cost_per_hour, currency),
        milliseconds(point.tpot_s),
        milliseconds(point.ttft_s),
        str(point.gpus_used),
        proof,
        "; ".join(plans) or "nothing runs",
    )

"""The front of money against latency on the page: a table always, a figure where the plotting library is installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from planner.plan.document import PlanDocument
from planner.report.page.tables import Table
from planner.report.words import gap_words, milliseconds, per_hour, shape_words


def front_table(plan: PlanDocument) -> Table:
    """Plans of the front from the cheapest to the fastest."""
    rows = []
    for point in () if plan.pareto is None else plan.pareto.points:
        shapes = ", ".join(
            f"{item.deployment} {item.replicas} x {shape_words(item.shape.tp, item.shape.pp, item.shape.ep, item.shape.dp)} on {item.shape.gpu}"
            for item in point.shapes
        )
        proof = "proved" if point.proof == "optimal" else f"gap {gap_words(point.gap)}"
        cost = per_hour(point.cost_per_hour, plan.currency)
        rows.append((cost, str(point.gpus_used), milliseconds(point.tpot_s), milliseconds(point.ttft_s), proof, shapes))
    return Table(("cost", "GPUs", "worst per token", "worst first token", "proof", "what runs"), tuple(rows), frozenset({0, 1, 2, 3}))


def figures_svg(document: Mapping[str, Any], *names: str) -> tuple[tuple[str, str], ...]:
    """SVG of the named figures that a document has rows for, with what each shows; nothing without the plotting library."""
    if find_spec("altair") is None or find_spec("vl_convert") is None:
        return ()
    from planner.report.plots.drawing import page_svg, with_config
    from planner.report.plots.figures import figures_of

    found = {figure.name: (figure, rows) for figure, rows in figures_of(document) if figure.name in names}
    return tuple((figure.shows, page_svg(with_config(figure.draw(rows).to_dict()))) for figure, rows in found.values())

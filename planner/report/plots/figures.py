"""The figures: which document each is drawn of, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from planner.report.plots import charts, rows
from planner.report.plots.rows import Document, Row

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Figure:
    """One figure: its name, what it shows, the command whose `--json` it is drawn of, its rows, and the drawing."""

    name: str
    shows: str
    command: str
    belongs: Callable[[Document], bool]
    rows: Callable[[Document], Iterable[Row]]
    draw: Callable[[list[Row]], alt.TopLevelMixin]


def _calculator(name: str) -> Callable[[Document], bool]:
    return lambda document: document.get("calculator") == name


FIGURES: Final = (
    Figure("efficiency", "efficiency against GPUs", "planner scaling", _calculator("scaling"), rows.scaling_rows, charts.efficiency),
    Figure("time", "time per token against GPUs", "planner scaling", _calculator("scaling"), rows.scaling_rows, charts.step_time),
    Figure(
        "regimes",
        "compute- or communication-bound, by model, link and degree",
        "planner regimes",
        _calculator("regimes"),
        rows.regime_rows,
        charts.regimes,
    ),
    Figure(
        "layouts",
        "time per token by layout and part: TP against PP",
        "planner estimate",
        _calculator("estimate"),
        rows.layout_rows,
        charts.layouts,
    ),
    Figure(
        "cost", "cost per 1M output tokens against time per token", "planner estimate", _calculator("estimate"), rows.cost_rows, charts.cost
    ),
    Figure(
        "bubble",
        "pipeline bubble against sequences in flight",
        "planner estimate",
        _calculator("estimate"),
        rows.bubble_rows,
        charts.bubble,
    ),
    Figure("smallest", "fewest GPUs by memory of a GPU", "planner memory", _calculator("memory"), rows.smallest_rows, charts.smallest),
    Figure("memory", "memory a GPU needs against GPUs", "planner memory", _calculator("memory"), rows.memory_rows, charts.memory),
    Figure(
        "link", "measured collectives against alpha + beta", "planner fit", lambda document: "fits" in document, rows.link_rows, charts.link
    ),
    Figure(
        "comparison",
        "predicted against measured step times",
        "planner fit --compare",
        lambda document: "comparison" in document,
        rows.comparison_rows,
        charts.comparison,
    ),
    Figure(
        "pareto",
        "cost against latency, each plan proved",
        "planner solve --pareto",
        lambda document: bool(document.get("pareto")),
        rows.front_rows,
        charts.front,
    ),
    Figure(
        "scenarios",
        "cost of scenarios",
        "planner whatif",
        lambda document: bool(document.get("scenarios")),
        rows.scenario_rows,
        charts.scenarios,
    ),
    Figure(
        "growth",
        "cost as the load grows",
        "planner whatif --growth",
        lambda document: "questions" in document,
        rows.growth_rows,
        charts.growth,
    ),
)
"""Every figure; of one document the first that has rows is drawn unless another is named."""


def figures_of(document: Document) -> Iterator[tuple[Figure, list[Row]]]:
    """Figures that a document can be drawn as, with their rows."""
    for figure in FIGURES:
        if figure.belongs(document):
            found = list(figure.rows(document))
            if found:
                yield figure, found

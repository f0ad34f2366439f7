"""Files of figures: SVG and PNG by vl-convert, which carries its own fonts and renderer; Vega-Lite as JSON for other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.report.output import write_output
from planner.report.plots.figures import FIGURES, figures_of

SUFFIXES: Final = (".svg", ".png", ".json")
SCALE: Final = 2.0
"""Pixels of a PNG for each point."""

INK, PAPER, LINE, SOFT = "#1c1f23", "#ffffff", "#d8dbe0", "#5b626b"
CONFIG: Final[dict[str, Any]] = {
    "background": PAPER,
    "font": "DejaVu Sans",
    "title": {"anchor": "start", "fontSize": 15, "color": INK, "fontWeight": 600, "offset": 12},
    "axis": {
        "labelColor": INK,
        "titleColor": SOFT,
        "gridColor": LINE,
        "domainColor": SOFT,
        "tickColor": SOFT,
        "labelFontSize": 11,
        "titleFontSize": 12,
    },
    "legend": {"labelColor": INK, "titleColor": SOFT, "labelFontSize": 12},
    "header": {"labelColor": INK, "labelFontSize": 12},
    "view": {"stroke": LINE},
    "text": {"color": INK},
    "rule": {"color": SOFT},
}
# The page's own colours, so that a figure follows light and dark as the page around it does.
PAGE_COLOURS: Final = {INK: "var(--ink)", PAPER: "none", LINE: "var(--line)", SOFT: "var(--soft)"}


def vega_lite(data: object, file: str, name: str | None = None) -> dict[str, Any]:
    """Vega-Lite specification of a figure of a document, as JSON read from `file`.

    Raises
    ------
    PlannerError
        PLOT_NOT_POSSIBLE when the document has no figure, or none of that name; EXTRA_MISSING without the extra `plot`.
    """
    try:
        import altair as alt  # noqa: F401
    except ImportError:
        hint = "install the extra: pip install 'llm-deployment-planner[plot]'"
        raise PlannerError([Diagnostic("EXTRA_MISSING", "figures are drawn by Altair, which is not installed", hint)]) from None
    if not isinstance(data, dict):
        raise _impossible(file, "the file holds no JSON object", "give what a command printed with --json")
    try:
        found = {figure.name: (figure, rows) for figure, rows in figures_of(data)}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _impossible(file, f"the document lacks what a figure needs: {error}", "give what a command printed with --json") from None
    if name is not None and name not in {figure.name for figure in FIGURES}:
        raise _impossible(file, f"there is no figure {name[:40]}", f"there are {', '.join(figure.name for figure in FIGURES)}")
    if not found or (name is not None and name not in found):
        of = "" if name is None else f" {name}"
        wanted = next(
            (figure.command for figure in FIGURES if figure.name == name),
            "scaling, regimes, estimate, memory, fit, whatif or solve --pareto",
        )
        raise _impossible(file, f"the document has no rows for a figure{of}", f"give the --json of {wanted}")
    figure, rows = found[name] if name is not None else next(iter(found.values()))
    return with_config(figure.draw(rows).to_dict())


def with_config(specification: dict[str, Any]) -> dict[str, Any]:
    """The figure in the house's fonts and colours in place of the library's."""
    return {**specification, "config": CONFIG}


def _impossible(file: str, message: str, hint: str) -> PlannerError:
    return PlannerError([Diagnostic("PLOT_NOT_POSSIBLE", message, hint, place=Place(file))])


def write_figure(specification: dict[str, Any], output: Path) -> None:
    """Write a figure as SVG, PNG or Vega-Lite JSON, by the file's suffix.

    Raises
    ------
    PlannerError
        OUTPUT_NOT_WRITABLE, or PLOT_NOT_POSSIBLE for another suffix.
    """
    suffix = output.suffix.lower()
    if suffix not in SUFFIXES:
        hint = f"name a file that ends in {', '.join(SUFFIXES)}"
        raise PlannerError([Diagnostic("PLOT_NOT_POSSIBLE", f"{output.name} has no suffix of a figure", hint)])
    if suffix == ".json":
        content = (json.dumps(specification, indent=2) + "\n").encode()
    else:
        import vl_convert

        content = (
            vl_convert.vegalite_to_svg(specification).encode()
            if suffix == ".svg"
            else vl_convert.vegalite_to_png(specification, scale=SCALE)
        )
    write_output(output, content)


def page_svg(specification: dict[str, Any]) -> str:
    """SVG of a figure for a page, in the page's own colours."""
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(specification)
    for colour, variable in PAGE_COLOURS.items():
        text = text.replace(f'"{colour}"', f'"{variable}"')
    return text

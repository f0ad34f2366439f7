"""`planner plot`: figures of what the other commands print as JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from planner.cli.console import Common
from planner.cli.exit_codes import ExitCode

NO_COMMON = Common()


def plot(
    document: str | None = None,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    figure: str | None = None,
    common: Common = NO_COMMON,
) -> int:
    """Draw a figure of what a command printed with `--json`: efficiency, regimes, TP against PP, bubble, cost, memory, alpha + beta, calibration, Pareto.

    Parameters
    ----------
    document
        JSON of `planner scaling`, `regimes`, `estimate`, `memory`, `fit`, `whatif` or `solve --pareto`, or `-` for standard input; absent, the figures are listed.
    output
        File to write: .svg, .png, or .json for the Vega-Lite specification.
    figure
        Figure to draw where the document has several; absent, the first.
    common
        Options of every command.
    """
    import json

    from planner.diagnostics import Diagnostic, Place, PlannerError
    from planner.problem.source_text import display_name, read_source
    from planner.report.plots.drawing import vega_lite, write_figure
    from planner.report.plots.figures import FIGURES

    if document is None:
        for each in FIGURES:
            sys.stdout.write(f"{each.name:<12} {each.shows} ({each.command} --json)\n")
        return ExitCode.ANSWERED
    if output is None:
        raise PlannerError([Diagnostic("PLOT_NOT_POSSIBLE", "no file is named to draw to", "add -o figure.svg (or .png, .json)")])
    name = display_name(document)
    try:
        data = json.loads(read_source(document))
    except (ValueError, RecursionError) as error:
        place = Place(name, getattr(error, "lineno", None), getattr(error, "colno", None))
        hint = "give what a command printed with --json"
        raise PlannerError([Diagnostic("PLOT_NOT_POSSIBLE", "this is no JSON", hint, place=place)]) from None
    write_figure(vega_lite(data, name, figure), output)
    if common.verbose:
        sys.stderr.write(f"wrote {output}\n")
    return ExitCode.ANSWERED

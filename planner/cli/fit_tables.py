"""Fits and comparisons as tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from planner.calibrate.comparison import Agreement, Comparison
from planner.calibrate.fit import CollectiveFit
from planner.calibrate.report import FitReport
from planner.quantities.formatting import format_bandwidth

NOT_KNOWN = "-"


def microseconds(value: float) -> str:
    """Time in microseconds, to four digits."""
    return f"{value * 1e6:.4g} us"


def print_fits(report: FitReport, console: Console) -> None:
    """Print the fits of all runs as a table, then what was learnt, assumed and refused of each, and the constants of each link."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for column in ("link", "operation", "ranks", "start", "alpha per hop", "bandwidth", "line errs", "pieces err", "R2 large"):
        table.add_column(column, justify="left" if column in {"link", "operation"} else "right")
    for link, fit in report.fits:
        table.add_row(
            link or NOT_KNOWN,
            fit.identity.operation,
            _ranks(fit),
            NOT_KNOWN if fit.start is None else microseconds(fit.start),
            NOT_KNOWN if fit.alpha is None else microseconds(fit.alpha),
            NOT_KNOWN if fit.bandwidth is None else format_bandwidth(fit.bandwidth),
            NOT_KNOWN if fit.between is None else f"{fit.between.median:.0%}, {fit.between.largest:.0%}",
            NOT_KNOWN if fit.held_out is None else f"{fit.held_out.median:.1%}, {fit.held_out.largest:.0%}",
            NOT_KNOWN if fit.large_sizes is None else f"{fit.large_sizes.r_squared:.4f}",
        )
    console.print(table)
    console.print(
        "errors: median, largest, on sizes held out of the fit: of the line alpha + beta m between 4 KiB and 8 MiB, and of the pieces"
    )
    for link, fit in report.fits:
        console.print(
            f"\n{fit.identity.operation} over {fit.identity.ranks} ranks{f', {link}' if link else ''} ({fit.file})", soft_wrap=True
        )
        _print_words(console, fit.learnt, fit.assumed, fit.refused)
    for each in report.links:
        profile = each.profile
        constants = [
            f"{kind} "
            + ", ".join(
                text
                for text in (
                    "" if found.alpha is None else f"alpha {microseconds(found.alpha)}",
                    "" if found.bandwidth is None else f"bandwidth {format_bandwidth(found.bandwidth)}",
                )
                if text
            )
            for kind, found in (("hockney", profile.hockney), ("calibrated", profile.calibrated))
            if found is not None
        ]
        console.print(f"\nprofile of {each.name}: {'; '.join(constants) or 'no constants'}", soft_wrap=True)
        _print_words(console, [], each.assumed, each.refused)


def _print_words(console: Console, learnt: Sequence[str], assumed: Sequence[str], refused: Sequence[str]) -> None:
    for head, sentences in (("learnt", learnt), ("assumed", assumed), ("refused", refused)):
        for sentence in sentences:
            console.print(f"  {head:8} {sentence}", soft_wrap=True, markup=False)


def _ranks(fit: CollectiveFit) -> str:
    nodes = fit.identity.nodes
    if nodes is None or nodes == 1 or fit.identity.ranks % nodes:
        return str(fit.identity.ranks)
    return f"{nodes} x {fit.identity.ranks // nodes}"


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print errors and factors by model and GPU, and over all rows."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for column in ("model", "gpu", "rows", "median error", "p90", "factor", "median with it", "p90 with it"):
        table.add_column(column, justify="left" if column in {"model", "gpu"} else "right")
    for model, board, found in (*comparison.groups, ("all", "", comparison.whole)):
        table.add_row(model, board, *_agreement(found))
    console.print(table)
    console.print(
        f"profile {comparison.profile}: multiply predicted times by {comparison.whole.factor:.3f} (the median of measured over predicted); "
        "errors with a factor are on rows it was not read off",
        soft_wrap=True,
    )


def _agreement(found: Agreement) -> tuple[str, ...]:
    middle, tail = found.calibrated_median, found.calibrated_p90
    return (
        str(found.rows),
        f"{found.median:.1%}",
        f"{found.p90:.1%}",
        f"{found.factor:.3f}",
        NOT_KNOWN if middle is None else f"{middle:.1%}",
        NOT_KNOWN if tail is None else f"{tail:.1%}",
    )

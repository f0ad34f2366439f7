"""How calculators answer: one JSON document, CSV rows, or tables for people; notes go to stderr."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from planner.cli.console import Common, answer_console
from planner.report.words import milliseconds

Columns = Sequence[tuple[str, Callable[[Mapping[str, Any]], str]]]


def print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows under the names of all their columns, in order of first appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(sys.stdout, fieldnames=names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def print_table(rows: Iterable[Mapping[str, Any]], columns: Columns, common: Common, title: str = "") -> None:
    """Print a table: words left, numbers right."""
    from rich.table import Table
    from rich.text import Text

    cells = [[shown(row) for _, shown in columns] for row in rows]
    table = Table(box=None, pad_edge=False, show_edge=False, title=title or None, title_justify="left", title_style="bold")
    for index, (heading, _) in enumerate(columns):
        numeric = all(not line[index] or line[index][0] in "-+$0123456789" for line in cells)
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for line in cells:
        table.add_row(*(Text(cell) for cell in line))
    answer_console(common, width=None if sys.stdout.isatty() else 160).print(table)


def print_lines(lines: Iterable[str], common: Common) -> None:
    """Print lines of text, headings bold."""
    from rich.text import Text

    from planner.report.terminal import style_of

    console = answer_console(common)
    for line in lines:
        console.print(Text(line, style=style_of(line)), soft_wrap=True)


def seconds(value: float | None) -> str:
    """A time, `never` where it is infinite."""
    return "never" if value is None else milliseconds(value)


def share(value: float | None, digits: int = 0) -> str:
    """A share in per cent."""
    return "" if value is None else f"{value * 100:.{digits}f} %"


def number(value: float | None, digits: int = 1, nothing: str = "") -> str:
    """A number with thousands apart."""
    return nothing if value is None else f"{value:,.{digits}f}"


def yes(value: object) -> str:
    """A verdict in a word."""
    return "yes" if value else "no"

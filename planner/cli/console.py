"""Where words go: the answer on stdout, everything else on stderr, colours only on a terminal that wants them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from planner.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from rich.console import Console


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """Options of every command."""

    json: Annotated[bool, Parameter(name="--json", negative="", help="Print one JSON document instead of text.")] = False
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="", help="No warnings and no progress on stderr.")] = False
    verbose: Annotated[
        bool, Parameter(name=["--verbose", "-v"], negative="", help="More: notes, and a traceback on an internal error.")
    ] = False
    no_color: Annotated[bool, Parameter(name="--no-color", negative="", help="No colours, also on a terminal (or set NO_COLOR).")] = False


def answer_console(common: Common, width: int | None = None) -> Console:
    """Console on stdout: colours only on a terminal, `width` fixed at 120 when piped so that tables stay whole."""
    from rich.console import Console

    class PipedConsole(Console):
        """A console whose reader may go away, as that of every other answer may: the command ends as answered."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    terminal = sys.stdout.isatty()
    plain = common.no_color or bool(os.environ.get("NO_COLOR"))
    return PipedConsole(
        file=sys.stdout,
        no_color=plain,
        color_system=None if plain or not terminal else "auto",
        width=width or (None if terminal else 120),
        highlight=False,
        soft_wrap=False,
        emoji=False,
    )


def print_json(document: Any) -> None:
    """Print one JSON document, keys in their given order, one trailing newline."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def print_diagnostics(diagnostics: Iterable[Diagnostic], common: Common) -> None:
    """Print diagnostics on stderr, one a line: errors always, warnings unless quiet, notes only when verbose."""
    for diagnostic in diagnostics:
        if diagnostic.severity is Severity.WARNING and common.quiet:
            continue
        if diagnostic.severity is Severity.NOTE and not common.verbose:
            continue
        sys.stderr.write(f"{diagnostic.severity.value}: {diagnostic}\n")


def diagnostics_document(status: str, diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """Diagnostics as the JSON document that an invalid input answers with."""
    return {
        "format_version": 1,
        "status": status,
        "diagnostics": [
            {
                "code": diagnostic.code,
                "severity": diagnostic.severity.value,
                "message": diagnostic.message,
                "hint": diagnostic.hint,
                "file": diagnostic.place.file if diagnostic.place else None,
                "line": diagnostic.place.line if diagnostic.place else None,
                "column": diagnostic.place.column if diagnostic.place else None,
                "path": diagnostic.place.path if diagnostic.place else "",
            }
            for diagnostic in diagnostics
        ],
    }

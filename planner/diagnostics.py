"""The one shape of everything that is wrong.

A `Diagnostic` says what (`message`), where (`place`), and what to do instead (`hint`), under a stable `code`
that `planner catalog codes` lists. Rooms gather diagnostics and raise them all at once as `PlannerError`;
they never raise on the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a diagnostic weighs: an error stops the answer, a warning rides along, a note informs."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something is wrong.

    `file` is the name as the user gave it, `line` and `column` count from 1 (None when unknown), and `path`
    is the dotted path inside the document (`deployments.chat.workload.concurrency`).
    """

    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str = ""

    def __str__(self) -> str:
        parts = [str(part) for part in (self.file, self.line, self.column) if part is not None]
        head = ":".join(parts)
        if head and self.path:
            return f"{head}: {self.path}"
        return head or self.path


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong, or worth knowing: code, severity, place, message, hint."""

    code: str
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR
    place: Place | None = None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place is not None and str(self.place) else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{where}{self.message}{hint} [{self.code}]"


class PlannerError(Exception):
    """Input that cannot be used; carries every diagnostic found, not only the first."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("\n".join(str(diagnostic) for diagnostic in self.diagnostics))


def errors(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Keep only the diagnostics of severity error, in their order."""
    return tuple(diagnostic for diagnostic in diagnostics if diagnostic.severity is Severity.ERROR)


def raise_errors(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise `PlannerError` with all of them when at least one is an error.

    Raises
    ------
    PlannerError
        If any diagnostic has severity error.
    """
    found = tuple(diagnostics)
    if errors(found):
        raise PlannerError(found)

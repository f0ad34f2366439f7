"""What the page asks and what it is told; loaded without the solver."""

from __future__ import annotations

from dataclasses import dataclass

from planner.whatif.scenarios import Change


@dataclass(frozen=True)
class Question:
    """A problem file with the options of the command, and what was moved."""

    problem: str
    overrides: tuple[str, ...]
    changes: tuple[Change, ...]
    time_limit: float | None = None


@dataclass(frozen=True)
class Reply:
    """The plan as JSON and as the body of its page, or what is wrong."""

    plan: str | None
    body: str
    faults: tuple[str, ...] = ()

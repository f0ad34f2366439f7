"""How hard to try, when to stop, and whom to tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known while a stage runs: `incumbent` and `bound` in `unit` (None while there is none)."""

    stage: str
    incumbent: float | None
    bound: float | None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """Limits and hooks of one `solve`.

    `effort` bounds the deterministic time of the objective asked for [solver units, about 0.15 to 0.4 of a CPU second];
    the tie-breaking stages get a fifth of it each. The same effort gives the same plan on any machine. `time_limit` is a safety net in
    wall seconds [s], and a plan it stops says so. `gap` stops the search earlier, at that relative distance from the
    bound. `seed` is the solver's. `explain` also asks for the
    smallest repairs where there is no plan. `progress` is called with every new incumbent or bound, `log` with the lines of the solver's own log.
    """

    effort: float = 4.0
    time_limit: float | None = None
    gap: float = 0.0
    seed: int = 0
    explain: bool = True
    progress: Callable[[Progress], None] | None = None
    log: Callable[[str], None] | None = None

"""One allowance of work for all questions about repairs: counted by the solvers' own counters, never by a clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from planner.interrupts import asked
from planner.solve.clock import Clock
from planner.solve.program import Program

WHOLE = 12.0
"""Work of all questions of one answer together, about CPU seconds."""

SHORT = 3.0
"""Work of the questions of one of many answers, as in a sweep."""

PER_COEFFICIENT = 1.5e-5
"""Work of writing down one coefficient of a program, and of each time a solver reads it."""

PER_ITERATION, PER_ITERATION_COEFFICIENT = 4e-4, 1.5e-7
"""Work of one simplex iteration of a search, and what every coefficient of the program adds to it."""

RELAXED = 0.05
"""The same of one linear program alone, as a part: nothing is cut, branched or tried beside it."""

PER_SHAPE, PER_REFUSAL = 7e-4, 5e-5
"""Work of evaluating one shape for a menu, and of refusing one."""


def coefficients(program: Program) -> int:
    """Coefficients of all rows, and one for every variable."""
    return len(program.lower) + sum(len(row.variables) for row in program.rows)


@dataclass
class Work:
    """What is left of the allowance [about CPU seconds]; the `clock` is a safety net.

    The counters are the same on every machine, so the same problem gets the same answers; the clock stops only where somebody asked for it.
    """

    left: float = WHOLE
    clock: Clock = field(default_factory=Clock)
    floor: float = 0.0

    def spend(self, amount: float) -> None:
        """Count work that was done."""
        self.left -= amount

    @property
    def over(self) -> bool:
        """Whether no further question is to be asked: the allowance is used up, or nobody waits any more."""
        return self.left <= self.floor or asked() or self.clock.up

    @property
    def seconds(self) -> float | None:
        """What is left of the time [s]; None where it has no limit."""
        return self.clock.left

    @contextmanager
    def share(self, part: float) -> Iterator[None]:
        """Let the questions inside use no more than a part of what is left; what they leave is there for others."""
        before = self.floor
        self.floor = max(before, self.left - part * (self.left - before))
        try:
            yield
        finally:
            self.floor = before


def allowance(time_limit: float | None, whole: float = WHOLE) -> Work:
    """Give a whole allowance, with a safety net of so much wall time [s] from now on."""
    return Work(whole, Clock.of(time_limit))

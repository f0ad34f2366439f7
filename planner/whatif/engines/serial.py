"""One after another in this process."""

from __future__ import annotations

from collections.abc import Iterator

from planner.whatif.engines import Work
from planner.whatif.menus import MenuMemory
from planner.whatif.results import Solved
from planner.whatif.solving import solve_unit


def serial(work: Work, memory: MenuMemory) -> Iterator[tuple[str, Solved]]:
    """Solve the work with the menus that `memory` holds already."""
    for key, make in work.items():
        yield key, solve_unit(make(), memory)

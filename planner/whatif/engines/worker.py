"""What a worker process does: solve one unit with the menus it remembers from the ones before."""

from __future__ import annotations

import signal
import threading
from functools import cache

from planner.diagnostics import Diagnostic
from planner.whatif.menus import MenuMemory
from planner.whatif.results import Solved
from planner.whatif.solving import Unit, failed, solve_unit

MOST_DEATHS = 3
"""Times that a unit may take its worker with it before it is given up."""


@cache
def _memory() -> MenuMemory:
    # Ctrl-C reaches every process of a terminal; it is the driver that decides what to do about it.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return MenuMemory()


def solve_here(unit: Unit) -> Solved:
    """Answer of one unit, in a process that serves nothing else."""
    return solve_unit(unit, _memory())


def died(unit: Unit) -> Solved:
    """Answer for a unit whose workers died each time it was tried."""
    message = f"the process that solved it died {MOST_DEATHS} times"
    return failed(unit.loaded, [Diagnostic("WORKER_DIED", message, "give the workers more memory, or run fewer at once with --jobs")])

"""Exit codes of the command, a promise to scripts."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a process status says about the answer."""

    ANSWERED = 0
    INVALID = 1
    USAGE = 2
    INFEASIBLE = 3
    NO_PLAN_IN_TIME = 4
    INTERNAL = 70
    INTERRUPTED = 130

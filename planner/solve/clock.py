"""The wall clock of a time limit."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """A time limit that runs: it `ends` at a time of `time.monotonic` [s], never where that is None."""

    ends: float | None = None

    @classmethod
    def of(cls, seconds: float | None) -> Clock:
        """Start a clock of so many seconds; None is no limit."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    @property
    def up(self) -> bool:
        """Whether the time is up."""
        return self.ends is not None and time.monotonic() >= self.ends

    @property
    def left(self) -> float | None:
        """What is left of the time [s]; None where there is no limit."""
        return None if self.ends is None else max(0.0, self.ends - time.monotonic())

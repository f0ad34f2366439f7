"""How far a sweep has come: done of all, rate, and the time that is left; on stderr."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Final, TextIO

# On a terminal the line is drawn anew; into a file it is written now and then.
SECONDS_APART: Final = {True: 0.1, False: 10.0}
RECENT: Final = 200


def duration(seconds: float) -> str:
    """A time as `45 s`, `4 min 07 s` or `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def progress_line(done: int, total: int, rate: float) -> str:
    """Line that says how far it is, `rate` in answers per second (0 when not known yet)."""
    left = f" · {rate:.2g}/s · {duration((total - done) / rate)} left" if rate > 0 and done < total else ""
    return f"{done} of {total} solved{left}"


class Progress:
    """Writes progress while answers come in; `shown` switches it off, `reused` answers were there before."""

    def __init__(self, total: int, reused: int = 0, *, shown: bool = True, stream: TextIO | None = None) -> None:
        self._total, self._done, self._shown = total, reused, shown
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._times = deque([time.monotonic()], maxlen=RECENT)
        self._written = time.monotonic()

    def step(self) -> None:
        """One more answer is there."""
        self._done += 1
        now = time.monotonic()
        self._times.append(now)
        if self._shown and now - self._written >= SECONDS_APART[self._terminal]:
            self._written = now
            self._write("\r" if self._terminal else "", "" if self._terminal else "\n")

    def close(self) -> None:
        """Say how far it came."""
        if self._shown and self._terminal:
            self._write("\r", "\n")

    def _write(self, before: str, after: str) -> None:
        spent = self._times[-1] - self._times[0]
        rate = (len(self._times) - 1) / spent if spent > 0 else 0.0
        self._stream.write(f"{before}{progress_line(self._done, self._total, rate):<60}".rstrip(" " if after else "") + after)
        self._stream.flush()

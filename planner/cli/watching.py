"""How a solve is coming along, on stderr: one live line on a terminal, plain lines elsewhere, and only for those who wait."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from planner.solve.options import Progress

# What is answered at once needs no progress; on a terminal somebody looks at it, elsewhere it fills a log.
LIVE_AFTER: Final = 0.3
LINES_AFTER: Final = 2.0
APART: Final = 1.0
REDRAWN: Final = 4.0
STAGE_WORDS: Final = {
    "token_time": "shortest time per token",
    "first_token": "time to first token",
    "latency": "time per token",
    "communication": "least communication",
    "whole_scopes": "domains kept whole",
    "unserved": "load unserved",
    "moves": "fewest moves",
    "order": "canonical order",
}


class Watch:
    """Shows phases and progress on `stream`: live on a terminal, else as lines after two seconds, or at once where `verbose`.

    `quiet` shows nothing. With `log` the lines are between those of the solvers' own logs, which a live line would disturb.
    """

    def __init__(self, stream: TextIO, *, quiet: bool = False, verbose: bool = False, log: bool = False, plain: bool = False) -> None:
        self._stream, self._plain = stream, plain
        self._live_wanted = stream.isatty() and not quiet and not log
        self._lines_wanted = not quiet and not self._live_wanted
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._phase, self._told = "", ""
        self._known: Progress | None = None
        self._live: Any = None
        self._written = -APART
        self._at_once = verbose or log
        self._open = self._at_once
        self._closed = False
        self._timer: threading.Timer | None = None
        if not quiet and not (self._lines_wanted and self._at_once):
            self._timer = threading.Timer(LIVE_AFTER if self._live_wanted else LINES_AFTER, self._begin)
            self._timer.daemon = True
            self._timer.start()

    def phase(self, name: str) -> None:
        """Tell what is being done."""
        with self._lock:
            self._phase, self._known = name, None
            self._line(important=True)

    def progress(self, known: Progress) -> None:
        """Tell what is known of a stage of the search."""
        with self._lock:
            before, self._known = self._known, known
            new = before is None or (before.stage, before.incumbent) != (known.stage, known.incumbent)
            self._line(important=self._at_once and new)

    def log(self, line: str) -> None:
        """Pass a line of a solver's own log on."""
        self._stream.write(f"{line.rstrip()}\n")

    def close(self) -> None:
        """Take the live line away; nothing is shown from now on."""
        with self._lock:
            live, self._live, self._closed = self._live, None, True
        if self._timer is not None:
            self._timer.cancel()
        if live is not None:
            live.stop()

    def words(self) -> str:
        """What is known now, in a line: time, phase or stage, plan, bound and gap."""
        parts = [f"{time.monotonic() - self._start:.1f} s"]
        known = self._known
        if known is None:
            return " · ".join([*parts, self._phase or "starting"])
        parts.append(STAGE_WORDS.get(known.stage, known.stage))
        # A bound of zero tells no more than none, but for a plan that costs nothing.
        bound = known.bound if known.bound or known.incumbent == 0 else None
        for name, value in (("plan", known.incumbent), ("bound", bound)):
            if value is not None:
                parts.append(f"{name} {_amount(value, known.unit)}")
        if known.incumbent is not None and bound is not None:
            gap = abs(known.incumbent - bound) / abs(known.incumbent) if known.incumbent else 0.0
            parts.append(f"gap {100 * gap:.3g} %")
        return " · ".join(parts)

    def __rich__(self) -> Any:
        """Draw the live line."""
        from rich.text import Text

        return Text(self.words(), style="" if self._plain else "dim", no_wrap=True, overflow="ellipsis")

    def _begin(self) -> None:
        """Somebody waits: begin to show."""
        if not self._live_wanted:
            with self._lock:
                self._open = True
                self._line(important=True)
            return
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream, no_color=self._plain, highlight=False)
        live = Live(self, console=console, refresh_per_second=REDRAWN, transient=True, redirect_stdout=False, redirect_stderr=False)
        with self._lock:
            if not self._closed:
                self._live = live
                live.start()

    def _line(self, *, important: bool) -> None:
        """Write a line where lines are wanted, what matters less only now and then."""
        if self._closed or not self._open or not self._lines_wanted:
            return
        now = time.monotonic()
        told = self.words().partition(" · ")[2]
        if told == self._told or (not important and now - self._written < APART):
            return
        self._told, self._written = told, now
        self._stream.write(f"{self.words()}\n")
        self._stream.flush()


def _amount(value: float, unit: str) -> str:
    """A value in the unit of its stage."""
    if unit == "money/h":
        return f"{value:,.2f}/h"
    return f"{value:,.6g} {unit}".strip()

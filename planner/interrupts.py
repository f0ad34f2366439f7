"""Ctrl-C while a plan is made: noted and told to whoever searches, never raised, so that the best plan so far is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")

PATIENCE = 0.1
"""Longest wait [s] after which the main thread looks whether Ctrl-C came while other code runs in a thread of its own."""


class Interrupts:
    """Holds Ctrl-C from `hold` to `release`: the first one is noted in `asked` and stops the work in progress, a second one is raised as ever.

    Outside the main thread, and inside another holder, `hold` does nothing.
    """

    active: Interrupts | None = None

    def __init__(self) -> None:
        self.asked = False
        self._stop: Callable[[], object] | None = None
        self._before: Any = None

    def hold(self) -> None:
        """Note Ctrl-C from now on, in place of raising it."""
        if Interrupts.active is None and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
            Interrupts.active = self

    def release(self) -> None:
        """Raise Ctrl-C again, as before."""
        if Interrupts.active is self:
            Interrupts.active = None
            signal.signal(signal.SIGINT, signal.default_int_handler if self._before is None else self._before)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self._stop is not None:
            self._stop()

    def run(self, work: Callable[[], Result], stop: Callable[[], object]) -> Result:
        """Run `work` in a thread of its own while this one listens for Ctrl-C, upon which `stop` is called.

        Python hears of a signal only between its own steps, which foreign code does not take.
        """
        found: list[Result] = []
        failed: list[BaseException] = []

        def call() -> None:
            try:
                found.append(work())
            except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
                failed.append(error)

        thread = threading.Thread(target=call, daemon=True)
        before = self.asked
        self._stop = stop
        try:
            thread.start()
            while thread.is_alive():
                thread.join(PATIENCE)
                if self.asked and not before:
                    # Said again: work that had not begun yet may not have heard it.
                    stop()
        finally:
            self._stop = None
        if failed:
            raise failed[0]
        return found[0]


def asked() -> bool:
    """Whether Ctrl-C came since it is held."""
    return Interrupts.active is not None and Interrupts.active.asked


def run(work: Callable[[], Result], stop: Callable[[], object]) -> Result:
    """Run foreign code so that Ctrl-C stops it, where Ctrl-C is held; else just run it."""
    holder = Interrupts.active
    if holder is None or threading.current_thread() is not threading.main_thread():
        return work()
    return holder.run(work, stop)

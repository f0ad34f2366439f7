"""The desk: one question is worked on at a time, and a newer one ends the older."""

from __future__ import annotations

import multiprocessing
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Final

from planner.ui.question import Question, Reply

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

SETTLE: Final = 0.03
"""How long a question waits for a newer one before it is worked on [s]: a slider sends dozens a second."""


def _work(question: Question, connection: Connection) -> None:
    """Body of a process; the solver is loaded in it alone, never in the process that serves the page."""
    from planner.ui.work import work

    work(question, connection)


class Desk:
    """Hands questions to processes of their own; at most one process runs."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["planner.ui.work", "planner.solve.answer"])
        self._lock = threading.Lock()
        self._newer = threading.Condition(self._lock)
        self._ticket = 0
        self._running: BaseProcess | None = None

    def ask(self, question: Question) -> Reply | None:
        """Answer a question; None when a newer one took its place."""
        with self._newer:
            self._ticket += 1
            ticket = self._ticket
            self._end()
            self._newer.notify_all()
            if self._newer.wait_for(lambda: self._ticket != ticket, SETTLE):
                return None
            mine, theirs = self._context.Pipe(duplex=False)
            process = self._context.Process(target=_work, args=(question, theirs), daemon=True)
            process.start()
            self._running = process
            theirs.close()
        with closing(mine):
            try:
                reply = mine.recv()
            except (EOFError, ConnectionResetError):
                reply = None
        process.join()
        with self._lock:
            if self._running is process:
                self._running = None
            overtaken = self._ticket != ticket
        if overtaken:
            return None
        if isinstance(reply, Reply):
            return reply
        return Reply(None, "", (f"the process that solved it ended with code {process.exitcode}; ask again",))

    def _end(self) -> None:
        """End the question that is worked on; the lock is held."""
        if self._running is not None:
            self._running.kill()
            self._running = None

    def close(self) -> None:
        """End whatever runs; nothing may be asked afterwards."""
        with self._newer:
            self._ticket += 1
            self._end()
            self._newer.notify_all()

    @property
    def busy(self) -> bool:
        """Whether a question is being worked on."""
        with self._lock:
            return self._running is not None and self._running.is_alive()

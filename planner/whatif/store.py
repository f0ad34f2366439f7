"""Answers on disk: one file, one line each, appended and never rewritten, so that whatever kills a sweep takes no finished answer with it.

A line is `CHECKSUM KEY JSON`. It counts only when it is whole: a torn last line, as a killed process or a full disk leaves it, is cut off before
anything is appended. A key stands for the same work anywhere, so an answer that is there twice is one answer.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pydantic import ValidationError

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.whatif.results import Solved

HEADER: Final = b"planner what-if store 1\n"
DIGITS: Final = 16


class Store:
    """Answers by key, in memory and appended to a file where one is given.

    One process writes a store at a time: it holds a lock on the file. `fresh` counts the answers added since it was opened.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.fresh = 0
        self.damaged = 0
        self._answers: dict[str, Solved] = {}
        self._file: int | None = None
        self._end = 0

    def __enter__(self) -> Self:
        """Open, lock and read the file.

        Raises
        ------
        PlannerError
            STORE_NOT_WRITABLE, STORE_IN_USE, STORE_NOT_READABLE.
        """
        if self.path is None:
            return self
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._error("STORE_NOT_WRITABLE", error.strerror or str(error), "name a file in a folder that may be written") from None
        try:
            self._lock()
            self._read()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the file, which also unlocks it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __len__(self) -> int:
        return len(self._answers)

    def __contains__(self, key: str) -> bool:
        return key in self._answers

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def get(self, key: str) -> Solved | None:
        """Answer of a unit, None where it is not solved yet."""
        return self._answers.get(key)

    def add(self, key: str, answer: Solved) -> None:
        """Keep an answer; when this returns it is on the disk.

        Raises
        ------
        PlannerError
            STORE_NOT_WRITABLE, when the disk is full for example; the answer is then known to this process only, and the file is as it was.
        """
        if key in self._answers:
            return
        self._answers[key] = answer
        self.fresh += 1
        if self._file is None:
            return
        line = line_of(key, answer)
        try:
            done = 0
            while done < len(line):
                done += os.pwrite(self._file, line[done:], self._end + done)
            os.fsync(self._file)
        except OSError as error:
            self._cut()
            reason = error.strerror or str(error)
            hint = "free some space and run the same command again: it goes on from what is stored"
            raise self._error("STORE_NOT_WRITABLE", reason, hint) from None
        self._end += len(line)

    def _lock(self) -> None:
        import fcntl

        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._error("STORE_IN_USE", "another sweep is writing to it", "wait for it to end, or name another file") from None
        except OSError:
            return  # a file system without locks: keys still keep answers from counting twice

    def _read(self) -> None:
        assert self._file is not None
        with os.fdopen(os.dup(self._file), "rb") as file:
            file.seek(0)
            first = file.readline()
            if not HEADER.startswith(first):
                message = "this is no what-if store"
                raise self._error("STORE_NOT_READABLE", message, "name another file: nothing is written over one that is not a store")
            end = len(HEADER)
            if first == HEADER:
                for line in file:
                    found = read_line(line)
                    if found is not None:
                        self._answers[found[0]] = found[1]
                    elif line.endswith(b"\n"):
                        self.damaged += 1
                    if line.endswith(b"\n"):
                        end += len(line)
        self._end = end
        if first != HEADER:
            try:
                os.pwrite(self._file, HEADER, 0)
            except OSError as error:
                raise self._error("STORE_NOT_WRITABLE", error.strerror or str(error), "free some space") from None
        self._cut()

    def _cut(self) -> None:
        """Leave nothing behind the last whole line."""
        assert self._file is not None
        os.ftruncate(self._file, self._end)

    def _error(self, code: str, message: str, hint: str) -> PlannerError:
        return PlannerError([Diagnostic(code, f"store {self.path}: {message}", hint, place=Place("--store"))])


def line_of(key: str, answer: Solved) -> bytes:
    """Line that holds one answer."""
    text = f"{key} {answer.model_dump_json()}".encode()
    return hashlib.sha256(text).hexdigest()[:DIGITS].encode() + b" " + text + b"\n"


def read_line(line: bytes) -> tuple[str, Solved] | None:
    """Key and answer of a line; None where it is torn, damaged, or written by a version with other answers."""
    if not line.endswith(b"\n"):
        return None
    checksum, _, text = line[:-1].partition(b" ")
    if hashlib.sha256(text).hexdigest()[:DIGITS].encode() != checksum:
        return None
    key, _, written = text.partition(b" ")
    try:
        return key.decode(), Solved.model_validate_json(written)
    except (ValidationError, UnicodeDecodeError):
        return None

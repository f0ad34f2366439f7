"""Files and standard input -> text: bounded in size, UTF-8, printable; everything else is refused with its place."""

from __future__ import annotations

import codecs
import difflib
import errno
import os
import re
import select
import stat
import sys
import time
from pathlib import Path
from typing import Final

from planner.diagnostics import Diagnostic, Place, PlannerError

# A fleet of a hundred thousand GPUs takes a few kilobytes with host lists and some megabytes as a graph; a file beyond this is something else.
LARGEST_FILE: Final = 32 * 2**20
STDIN: Final = ("-", "/dev/stdin")
STDIN_NAME: Final = "<stdin>"
# How long a named pipe may be without a writer [s].
PATIENCE: Final = 1.0

# YAML's printable characters, and the byte-order mark; a lone surrogate cannot come out of UTF-8.
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def display_name(path: str) -> str:
    """Name of a source as diagnostics show it."""
    return STDIN_NAME if path in STDIN else path


def read_source(path: str) -> str:
    """Text of the file at `path`, or of standard input for `-`.

    Raises
    ------
    PlannerError
        FILE_NOT_FOUND, FILE_NOT_READABLE, FILE_TOO_LARGE, BINARY_FILE, NOT_UTF8, CONTROL_CHARACTER.
    """
    return decode(read_bounded(path, "write alike nodes once, as a host list such as h100-[0001-1250]"), display_name(path))


def read_bounded(path: str, shorten: str) -> bytes:
    """Contents of the file at `path`, or of standard input for `-`; `shorten` tells how to make a file that is too large smaller.

    Raises
    ------
    PlannerError
        FILE_NOT_FOUND, FILE_NOT_READABLE, FILE_TOO_LARGE.
    """
    name = display_name(path)
    try:
        data = _read_bytes(path)
    except FileNotFoundError:
        raise _error("FILE_NOT_FOUND", name, "there is no such file", _alike(path)) from None
    except IsADirectoryError:
        raise _error("FILE_NOT_READABLE", name, "is a folder", "name a file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _error("FILE_NOT_READABLE", name, f"cannot be read: {reason}", "check the path and its permissions") from None
    if len(data) > LARGEST_FILE:
        raise _error("FILE_TOO_LARGE", name, f"is larger than {LARGEST_FILE // 2**20} MiB", shorten)
    return data


def _read_bytes(path: str) -> bytes:
    if path in STDIN:
        return sys.stdin.buffer.read(LARGEST_FILE + 1)
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            os.set_blocking(file.fileno(), True)
            return file.read(LARGEST_FILE + 1)
        first = _first_of_pipe(file.fileno())
        os.set_blocking(file.fileno(), True)
        return first + file.read(LARGEST_FILE + 1 - len(first))


def _without_waiting(path: str, flags: int) -> int:
    """Open without waiting for the other end, which a named pipe may never get."""
    return os.open(path, flags if sys.platform == "win32" else flags | os.O_NONBLOCK)


def _first_of_pipe(descriptor: int) -> bytes:
    """First bytes of a pipe: a writer is given a moment to appear, and all the time it needs once it has.

    Raises
    ------
    OSError
        Where nothing writes to the pipe.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            first = os.read(descriptor, 2**16)
        except BlockingIOError:
            select.select([descriptor], [], [])  # a writer is there and has not written yet
            continue
        if first:
            return first
        if time.monotonic() > until:
            raise OSError(errno.EPIPE, "it is a pipe, and nothing writes to it")
        time.sleep(0.02)


def decode(data: bytes, name: str) -> str:
    """Text of UTF-8 `data`, a byte-order mark removed.

    Raises
    ------
    PlannerError
        BINARY_FILE, NOT_UTF8 or CONTROL_CHARACTER.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _error("NOT_UTF8", name, "is written in UTF-16", "save it as UTF-8")
    if b"\0" in data:
        raise _error("BINARY_FILE", name, "is a binary file", "name a YAML or JSON text file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        line, column = line_and_column(before, len(before))
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise PlannerError([Diagnostic("NOT_UTF8", message, "save the file as UTF-8", place=Place(name, line, column))]) from None
    if found := _UNPRINTABLE.search(text):
        line, column = line_and_column(text, found.start())
        message = f"the character U+{ord(found.group()):04X} does not belong in a text file"
        raise PlannerError([Diagnostic("CONTROL_CHARACTER", message, "remove it", place=Place(name, line, column))])
    return text


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def without_detours(path: Path) -> str:
    """Path with `folder/..` taken out, where that leads to the same file."""
    short = os.path.normpath(path)
    try:
        return short if Path(short).samefile(path) else str(path)
    except (OSError, ValueError):
        return short  # there is no such file; the short form is the one to show


def _error(code: str, name: str, message: str, hint: str) -> PlannerError:
    return PlannerError([Diagnostic(code, message, hint, place=Place(name))])


def _alike(path: str) -> str:
    """Hint with the file names most like `path` in its folder."""
    asked = Path(path)
    try:
        names = sorted(entry.name for entry in asked.parent.iterdir())
    except (OSError, ValueError):
        return f"the folder {asked.parent} cannot be read; check the path"
    # A neighbour with the same stem is a likelier slip (.yml for .yaml) than one with other letters.
    close = [name for name in names if Path(name).stem == asked.stem] or difflib.get_close_matches(asked.name, names, n=3)
    return f"nearest: {', '.join(str(asked.parent / name) for name in close[:3])}" if close else "check the path"

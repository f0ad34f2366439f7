"""Lines of a log as the benchmark wrote them: launchers' prefixes, terminal colours and other writers' lines taken off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

# A line beyond this is no table's; what is in it is not looked at.
LONGEST_LINE: Final = 4096

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# Marks of a rank that mpirun --tag-output, srun --label and launchers with [rank] put before each line.
_RANK: Final = re.compile(r"\s*(\[\d{1,6},\d{1,6}\]<(?:stdout|stderr|stddiag)>:|\d{1,6}:(?=[\s#]|$)|\[\d{1,6}\](?=\s|$))", re.ASCII)
# The library's own messages, which other ranks write into the middle of a line.
_INFO: Final = re.compile(r"(?:\[\d{1,6}\]\s*)?[\w.-]{1,255}:\d{1,10}:\d{1,10} \[\d{1,4}\] (?=NCCL |[\w/.-]{1,80}:\d{1,6} NCCL )", re.ASCII)


class Line(NamedTuple):
    """Text of a line without its marks, the mark that stood first (which rank wrote it), and its number counted from 1."""

    text: str
    stream: str
    number: int


def read_lines(text: str) -> Iterator[Line]:
    """Lines of a log, one for each writer where several wrote into one."""
    # Only line feeds part lines: a log may hold form feeds and other separators inside.
    for number, raw in enumerate(text.replace("\r", "\n").split("\n") if "\r\n" not in text else text.split("\n"), start=1):
        if len(raw) > LONGEST_LINE:
            continue
        line = _COLOURS.sub("", raw).rstrip()
        start = 0
        for info in [*_INFO.finditer(line)]:
            if info.start() > start:
                yield _unmarked(line[start : info.start()], number)
            start = info.start()
        yield _unmarked(line[start:], number)


def _unmarked(line: str, number: int) -> Line:
    stream = ""
    while found := _RANK.match(line):
        stream = stream or found.group(1)
        line = line[found.end() :]
    return Line(line, stream, number)

"""Lines of a log as the benchmark wrote them: launchers' prefixes, terminal colours and other writers' lines taken off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

# A line beyond this is no table's; what is in it is not looked at.
LONGEST_LINE: Final = 1024

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# Marks of a rank that mpirun --tag-output, srun --label and launchers with [rank] put before each line.
_RANK: Final = re.compile(r"\s*(\[\d{1,6},\d{1,6}\]<(?:stdout|stderr|stddiag)>:|\d{1,6}:(?=[\s#]|$)|\[\d{1,6}\](?=\s|$))", re.ASCII)
# Where a message of the library begins, which other ranks write into the middle of a line: `host:pid:tid [gpu]`, before it perhaps a mark.
_WRITER: Final = re.compile(r"[\w.-]{1,255}:\d{1,10}:\d{1,10}", re.ASCII)
_MARK_BEFORE: Final = re.compile(r"\[\d{1,6}\]\s*$", re.ASCII)
_LIBRARY: Final = " NCCL "
MOST_WRITERS: Final = 4


class Line(NamedTuple):
    """Text of a line without its marks, the mark that stood first (which rank wrote it), and its number counted from 1."""

    text: str
    stream: str
    number: int


def read_lines(text: str) -> Iterator[Line]:
    """Lines of a log that are not empty, one for each writer where several wrote into one."""
    # Only line feeds and carriage returns part lines: a log may hold form feeds and other separators inside.
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        if not raw or len(raw) > LONGEST_LINE or raw.isspace():
            continue
        line = (_COLOURS.sub("", raw) if "\x1b" in raw else raw).rstrip()
        if _LIBRARY in line:
            yield from (_unmarked(part, number) for part in _parted(line))
        else:
            yield _unmarked(line, number)


def _parted(line: str) -> Iterator[str]:
    """The parts of a line that several writers wrote into."""
    start = at = 0
    for _ in range(MOST_WRITERS):
        at = line.find(_LIBRARY, at)
        if at < 0:
            break
        words = line[start:at].rsplit(maxsplit=3)
        writer = next((word for word in words[-3:-1] if _WRITER.fullmatch(word)), None)
        if writer is not None:
            begin = line.rfind(writer, start, at)
            mark = _MARK_BEFORE.search(line, max(start, begin - 12), begin)
            begin = begin if mark is None else mark.start()
            if begin > start:
                yield line[start:begin]
            start = begin
        at += len(_LIBRARY)
    yield line[start:]


def _unmarked(line: str, number: int) -> Line:
    stream = ""
    while found := _RANK.match(line):
        stream = stream or found.group(1)
        line = line[found.end() :]
    return Line(line, stream, number)

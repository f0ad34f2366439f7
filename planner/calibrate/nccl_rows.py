"""Rows of nccl-tests tables in all the columns they have had.

    size count type [redop] [root]  time algbw busbw (#wrong | error | res)  time algbw busbw (#wrong | error | res)  [timestamp]

Out-of-place first, in-place second. Programs without a reduction print no redop, old versions no root; those of 2018 print milliseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from planner.calibrate.runs import ELEMENT_BYTES, FASTEST, LONGEST, SHORTEST, Rate, Row, Timing

_NUMBER: Final = re.compile(r"-?\d{1,18}(?:\.\d{0,9})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_NAMES: Final = "|".join(sorted(ELEMENT_BYTES, key=len, reverse=True))
_STEMS: Final = ("float", "int", "half", "double", "bf", "fp", "f8", "char")  # one of them is in every name of an element
_HEAD: Final = re.compile(rf"(?<![\w.:-])(\d{{1,18}})\s+(\d{{1,18}})\s+({_NAMES})(?![\w.])\s*(.*)", re.ASCII)
_REDUCTION: Final = re.compile(r"[a-z]{2,10}", re.ASCII)
_WHOLE: Final = re.compile(r"-?\d{1,6}", re.ASCII)
NOT_CHECKED: Final = "N/A"
VALUES: Final = 4  # time, algbw, busbw, and how many values came out wrong
# Above this share of the largest value, what an `error` column of old versions holds is no rounding.
ROUNDING: Final = 0.01


@dataclass(frozen=True, slots=True)
class Columns:
    """What a table's header says of its rows: whether there is a root, the unit of its times [s], and whether the last value is an error instead of a count."""

    root: bool
    unit: float
    error: bool


def read_columns(text: str) -> Columns | None:
    """Columns of a table's header line, None for other lines."""
    names = text.strip().lstrip("#").split()
    if len(names) < VALUES or names.count("busbw") != 2 or names[0] not in {"size", "bytes"}:
        return None
    return Columns("root" in names, 1e-3 if names[0] == "bytes" else 1e-6, "#wrong" not in names)


def times_processor(text: str) -> bool:
    """Whether a table's header announces the processor's time in place of the operation's (option -C)."""
    return "cputime" in text


@dataclass(slots=True)
class OpenRow:
    """A row as far as it has been read; a launcher may have broken it over several lines."""

    size: int
    count: int
    element: str
    reduction: str | None
    values: list[str]
    line: int
    columns: Columns | None

    def takes(self, text: str) -> bool:
        """Add the values of a line that holds nothing else; False when it holds something else."""
        words = text.split()
        if not words or any(word != NOT_CHECKED and not _NUMBER.fullmatch(word) for word in words):
            return False
        self.values += words[: 3 * VALUES]
        return True

    @property
    def whole(self) -> bool:
        """Whether both halves are there."""
        return len(self.values) >= 2 * VALUES + self._has_root

    @property
    def _has_root(self) -> bool:
        if self.columns is not None:
            return self.columns.root
        return bool(self.values) and _WHOLE.fullmatch(self.values[0]) is not None and len(self.values) % VALUES == 1

    def row(self) -> Row | None:
        """The row, None when not even its first half is there or its numbers cannot be times and bandwidths."""
        root = self._has_root
        rest = self.values[1:] if root else self.values
        unit = self.columns.unit if self.columns is not None else 1e-6
        errors = self.columns.error if self.columns is not None else False
        timings = []
        for start in range(0, min(len(rest) - VALUES + 1, 2 * VALUES), VALUES):
            timing = _timing(rest[start : start + VALUES], unit, errors=errors)
            if timing is None:
                break
            timings.append(timing)
        if not timings or self.size > 2**60:
            return None
        number = int(self.values[0]) if root and _WHOLE.fullmatch(self.values[0]) else None
        return Row(self.size, self.count, self.element, self.reduction, number, tuple(timings), self.line)


def open_row(text: str, line: int, columns: Columns | None) -> OpenRow | None:
    """The row that begins in a line, None where none does."""
    found = _HEAD.search(text) if any(stem in text for stem in _STEMS) else None
    if found is None:
        return None
    size, count, element, rest = found.groups()
    words = rest.split()
    reduction = None
    if words and words[0] != NOT_CHECKED and _REDUCTION.fullmatch(words[0]):
        reduction = words.pop(0)
    values: list[str] = []
    for word in words[: 3 * VALUES]:
        if word != NOT_CHECKED and not _NUMBER.fullmatch(word):
            break
        values.append(word)
    return OpenRow(int(size), int(count), element, reduction, values, line, columns)


def _timing(words: list[str], unit: float, *, errors: bool) -> Timing | None:
    if NOT_CHECKED in words[:3]:
        return None
    seconds, algorithm, bus = float(words[0]) * unit, _rate(words[1]), _rate(words[2])
    if not (SHORTEST <= seconds <= LONGEST and 0.0 <= algorithm.value <= FASTEST and 0.0 <= bus.value <= FASTEST):
        return None
    if words[3] == NOT_CHECKED:
        return Timing(seconds, algorithm, bus, None)
    wrong = float(words[3])
    if errors or "e-" in words[3]:
        return Timing(seconds, algorithm, bus, int(abs(wrong) > ROUNDING))
    return Timing(seconds, algorithm, bus, int(min(abs(wrong), 1e18)))


def _rate(word: str) -> Rate:
    """Bandwidth printed in GB/s."""
    exponent = Decimal(word).as_tuple().exponent
    within = 0.5e9 * 10.0**exponent if isinstance(exponent, int) else 0.0
    return Rate(float(word) * 1e9, within)

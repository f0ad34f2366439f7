"""Host lists: "h100-[01-16]" <-> its names, in ClusterShell's grammar, with the size bounded before anything is expanded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

# ClusterShell also knows set operators (! & ^), node groups (@racks) and wildcards, which read files of the machine: refused.
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOLDED: Final = re.compile(r"(?:[A-Za-z0-9._-]|\[[0-9][0-9,/-]*\])+(?:,(?:[A-Za-z0-9._-]|\[[0-9][0-9,/-]*\])+)*")
_PART: Final = re.compile(r"(?:[^,\[]|\[[^\]]*\]?)+")
_BRACKETS: Final = re.compile(r"\[([^\]]*)\]")
_RANGE: Final = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12})(?:/([1-9][0-9]{0,8}))?)?")
# One bracket of rising ranges, all numbers as wide or none with leading zeros: what nearly every file has, expanded here without ClusterShell.
_ONE_BRACKET: Final = re.compile(r"([A-Za-z0-9._-]*)\[([0-9,-]+)\]([A-Za-z0-9._-]*)")
# A name by its last number; numbers before it are the same in names of one series.
_NUMBERED: Final = re.compile(r"((?:[A-Za-z0-9._-]*[A-Za-z._-])?)([0-9]{1,12})([A-Za-z._-]*)")
_LONGEST_SHOWN: Final = 60


class HostListError(ValueError):
    """A host list that cannot be read: `code`, `message` and `hint` of the diagnostic to make of it."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        self.code = code
        self.message = message
        self.hint = hint
        super().__init__(f"{message}; {hint}")


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def _outside_brackets(text: str) -> list[str]:
    """Split at the commas that separate hosts, not at those inside brackets."""
    return _PART.findall(text)


def count_hosts(text: str) -> int:
    """Number of names a host list stands for, found without expanding it.

    Raises
    ------
    HostListError
        If a bracket holds no range of numbers.
    """
    total = 0
    for part in _outside_brackets(text):
        names = 1
        for inside in _BRACKETS.findall(part):
            names *= sum(_count_range(piece, text) for piece in inside.split(","))
        total += names
    return total


def _count_range(piece: str, text: str) -> int:
    found = _RANGE.fullmatch(piece)
    if found is None:
        raise HostListError(
            "HOST_LIST_INVALID", f"host list `{_shown(text)}` has the range `{_shown(piece)}`", "write ranges such as [01-16] or [1,3-5]"
        )
    low, high, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
    if high < low:
        raise HostListError(
            "HOST_LIST_INVALID", f"host list `{_shown(text)}` counts down from {low} to {high}", f"write [{found[2]}-{found[1]}]"
        )
    return (high - low) // step + 1


def expand_hosts(text: str, most: int) -> tuple[str, ...]:
    """Names a host list stands for, in ClusterShell's order, leading zeros kept.

    Parameters
    ----------
    text : str
        One name or a host list in ClusterShell's grammar: "h100-[01-16]", "a[1-3]m[1-2],b7", "n[0-8/2]".
    most : int
        Largest number of names accepted.

    Raises
    ------
    HostListError
        HOST_LIST_INVALID for text that is no host list, HOST_LIST_TOO_LARGE for one that names more than `most` hosts.
    """
    if _PLAIN.fullmatch(text):
        return (text,)
    if not _FOLDED.fullmatch(text):
        hint = "write letters, digits, dots, dashes and ranges in brackets, such as h100-[01-16]"
        raise HostListError("HOST_LIST_INVALID", f"`{_shown(text)}` is not a host list", hint)
    hosts = count_hosts(text)
    if hosts > most:
        raise HostListError("HOST_LIST_TOO_LARGE", f"host list `{_shown(text)}` names {hosts:,} hosts", f"at most {most:,} are read")
    simple = _ONE_BRACKET.fullmatch(text)
    numbers = _rising(simple[2]) if simple is not None else None
    if simple is not None and numbers is not None:
        return tuple(f"{simple[1]}{number}{simple[3]}" for number in numbers)
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetParseError

    try:
        return tuple(str(name) for name in NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetParseError as error:
        raise HostListError(
            "HOST_LIST_INVALID", f"`{_shown(text)}` is not a host list: {error}", "write for example h100-[01-16]"
        ) from None


def _rising(ranges: str) -> list[str] | None:
    """Numbers of rising ranges, as written; None where widths or order leave it to ClusterShell what they stand for."""
    ends = [piece.partition("-") for piece in ranges.split(",")]
    words = [word for low, _, high in ends for word in (low, high) if word]
    width = len(words[0]) if all(len(word) == len(words[0]) for word in words) else 0
    if not width and any(word != str(int(word)) for word in words):
        return None
    numbers: list[str] = []
    last = -1
    for low, _, high in ends:
        first, end = int(low), int(high or low)
        if first <= last:
            return None
        numbers.extend(f"{number:0{width}d}" for number in range(first, end + 1))
        last = end
    return numbers


def _fold_one_series(names: Sequence[str]) -> str | None:
    """Host list of names that differ in their last number only, as ClusterShell writes it; None for all others."""
    parts = [_NUMBERED.fullmatch(name) for name in names]
    first = parts[0] if parts else None
    if first is None or any(part is None or part[1] != first[1] or part[3] != first[3] for part in parts):
        return None
    words = {part[2] for part in parts if part is not None}
    width = len(first[2]) if all(len(word) == len(first[2]) for word in words) else 0
    if len(words) == 1 or (not width and any(word[0] == "0" and word != "0" for word in words)):
        return None
    numbers = sorted(map(int, words))
    ends: list[list[int]] = []
    for number in numbers:
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    written = (f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}" for low, high in ends)
    return f"{first[1]}[{','.join(written)}]{first[3]}"


def fold_hosts(names: Sequence[str]) -> str:
    """Host list that stands for the names: h100-01, h100-02 -> "h100-[01-02]"."""
    if len(names) == 1:
        return names[0]
    folded = _fold_one_series(names)
    if folded is not None:
        return folded
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))

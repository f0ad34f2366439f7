"""Text pasted from terminals -> lines: escape sequences taken out, size bounded, so that what follows may read every line."""

from __future__ import annotations

import codecs
import re
from typing import Final

from planner.diagnostics import Diagnostic, Place, PlannerError

LARGEST: Final = 32 * 2**20
MOST_LINES: Final = 500_000
LONGEST_LINE: Final = 65_536

# Colours and cursor movements, window titles, character sets (ECMA-48).
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Za-z0-9]|[=>78M])")


def refusal(code: str, message: str, hint: str, file: str, line: int | None = None) -> PlannerError:
    """The error that ends the reading of one file."""
    return PlannerError([Diagnostic(code, message, hint, place=Place(file, line))])


def text_of(data: bytes, file: str) -> str:
    """Text of a file that a terminal or a shell's redirection wrote: UTF-8, or UTF-16 with its mark, escape sequences and all.

    Raises
    ------
    PlannerError
        BINARY_FILE, NOT_UTF8.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            code = "BINARY_FILE" if b"\0" in data[:4096] else "NOT_UTF8"
            message = "is a binary file" if code == "BINARY_FILE" else f"byte 0x{data[error.start]:02x} is not UTF-8"
            raise refusal(code, message, "save the command's output as text", file, line) from None
    if "\0" in text:
        raise refusal("BINARY_FILE", "is a binary file", "save the command's output as text", file)
    return text


def check_size(text: str, file: str, most: int = LARGEST) -> None:
    """Refuse a text that is no such file by its size alone.

    Raises
    ------
    PlannerError
        FILE_TOO_LARGE, EMPTY_FILE.
    """
    if len(text) > most:
        raise refusal("FILE_TOO_LARGE", f"holds more than {most:,} characters", "give the output of one command a file", file)
    if not text.strip():
        raise refusal("EMPTY_FILE", "holds nothing", "save the command's output again", file)


def clean_lines(text: str, file: str, most: int = LARGEST) -> list[str]:
    """Lines of a text without escape sequences and line ends; line n is at n - 1.

    Raises
    ------
    PlannerError
        FILE_TOO_LARGE for too many characters or lines, LINE_TOO_LONG, EMPTY_FILE.
    """
    check_size(text, file, most)
    if text.count("\n") >= MOST_LINES:
        raise refusal("FILE_TOO_LARGE", f"has more than {MOST_LINES:,} lines", "give the output of one command a file", file)
    lines = (_ESCAPES.sub("", text) if "\x1b" in text else text).split("\n")
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE:
            message = f"a line of {len(line):,} characters"
            raise refusal("LINE_TOO_LONG", message, "save the command's output as it was printed", file, number)
    return [line.rstrip("\r") for line in lines]

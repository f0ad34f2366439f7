"""Shell text -> commands as words with their places: quotes, continued lines and comments read, nothing run or expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.diagnostics import Place

MOST_WORDS: Final = 200_000
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
# What ends a command: a new line, `;`, `&`, `&&`, `|`, `||`, and parentheses around groups of commands.
_ENDS: Final = frozenset(";&|()\n")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command, quotes taken off, with the place where it begins."""

    text: str
    place: Place


def commands(text: str, file: str) -> list[list[Word]]:
    """Commands of a shell text, each as its words; a word keeps variables (`$TP`) as they are written."""
    found: list[list[Word]] = [[]]
    for word in _words(text, file):
        if word is None:
            if found[-1]:
                found.append([])
        else:
            found[-1].append(word)
    return [command for command in found if command]


def words_of_line(text: str, place: Place) -> list[Word]:
    """Words of a text that stands inside another file (the `args` of a manifest), all with the place of that text."""
    return [Word(word.text, place) for word in _words(text, "") if word is not None]


def _words(text: str, file: str) -> Iterator[Word | None]:
    """Words in order; None where a command ends."""
    line, start = 1, 0  # `start` is where the line begins
    position, count = 0, 0
    letters: list[str] = []
    began: Place | None = None
    quote = ""
    length = len(text)
    while position < length and count < MOST_WORDS:
        letter = text[position]
        here = Place(file, line, position - start + 1)
        if letter == "\n":
            line, start = line + 1, position + 1
        if quote:
            if letter == quote:
                quote = ""
            elif letter == "\\" and quote == '"' and position + 1 < length and text[position + 1] in '"\\$`':
                position += 1
                letters.append(text[position])
            else:
                letters.append(letter)
        elif letter == "\\" and position + 1 < length:
            position += 1
            rest = text[position:].split("\n", 1)[0]
            if not rest.strip():  # a continued line, blanks after its backslash or not
                position += len(rest)
                line, start = line + 1, position + 1
                if began is not None:
                    yield Word("".join(letters), began)
                    letters, began, count = [], None, count + 1
            else:
                letters.append(text[position])
                began = began or here
        elif letter in "'\"":
            quote = letter
            began = began or here
        elif letter in _ENDS or letter.isspace():
            if began is not None:
                yield Word("".join(letters), began)
                letters, began, count = [], None, count + 1
            if letter in _ENDS:
                yield None
        elif letter == "#" and began is None:
            position = text.find("\n", position)
            if position < 0:
                break
            continue
        else:
            letters.append(letter)
            began = began or here
        position += 1
    if began is not None:
        yield Word("".join(letters), began)


def assignment(word: Word) -> tuple[str, Word] | None:
    """Name and value of `NAME=value`; None for other words."""
    found = _ASSIGNMENT.fullmatch(word.text)
    if found is None:
        return None
    place = word.place
    column = None if place.column is None else place.column + len(found[1]) + 1
    return found[1], Word(found[2], Place(place.file, place.line, column, place.path))

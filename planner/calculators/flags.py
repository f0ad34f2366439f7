"""Values of command-line flags: comma lists and repeated flags, every fault told at once under the name of its flag.

Flags arrive as text so that `--tp 0 --batch nan --gpu h1000` is one answer with three sentences and not the first complaint of a parser.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from planner.diagnostics import Diagnostic, Place, PlannerError, raise_errors
from planner.quantities import Kind, QuantityError, parse_quantity

Found = TypeVar("Found")

_WHOLE = re.compile(r"[+-]?[0-9]+")
_LONGEST = 40
# More values than this in one flag is a slip of the pen, not a question.
MOST_VALUES = 1000


class FlagReader:
    """Reads flags one after the other and keeps what is wrong with them; `finish` raises all of it together."""

    def __init__(self) -> None:
        self.faults: list[Diagnostic] = []

    def fault(self, flag: str, code: str, message: str, hint: str) -> None:
        """Keep one fault of a flag."""
        self.faults.append(Diagnostic(code, message, hint, place=Place(path=flag)))

    def finish(self) -> None:
        """Raise every fault found.

        Raises
        ------
        PlannerError
            If there is any.
        """
        raise_errors(dict.fromkeys(self.faults))

    def parts(self, flag: str, texts: Sequence[str]) -> tuple[str, ...]:
        """Values of a flag given once or several times, each a value or a comma list, doubles dropped."""
        values = [part.strip() for text in texts for part in text.split(",")]
        if any(not value for value in values):
            self.fault(flag, "EMPTY_LIST", "a value is missing", f"write {flag} with a value, or several with commas between them")
        if len(values) > MOST_VALUES:
            self.fault(flag, "TOO_MANY_VALUES", f"{len(values)} values are more than {MOST_VALUES}", "ask for fewer at once")
            return ()
        return tuple(dict.fromkeys(value for value in values if value))

    def counts(self, flag: str, texts: Sequence[str], most: int, least: int = 1) -> tuple[int, ...]:
        """Whole numbers from `least` to `most`."""
        found = (self._count(flag, text, least, most) for text in self.parts(flag, texts))
        return tuple(dict.fromkeys(count for count in found if count is not None))

    def count(self, flag: str, text: str | None, most: int, least: int = 1) -> int | None:
        """One whole number, None where the flag is absent or wrong."""
        return None if text is None else self._count(flag, text.strip(), least, most)

    def _count(self, flag: str, text: str, least: int, most: int) -> int | None:
        shown = _shown(text)
        hint = f"write a whole number from {least} to {most}"
        if _WHOLE.fullmatch(text) and len(text) <= _LONGEST:
            value = int(text)
        else:
            try:
                number = float(text)
            except ValueError:
                self.fault(flag, "NOT_AN_INTEGER", f"{shown} is not a whole number", hint)
                return None
            if not math.isfinite(number):
                self.fault(flag, "NOT_FINITE", f"{shown} is not a finite number", hint)
                return None
            if number != int(number):
                self.fault(flag, "NOT_AN_INTEGER", f"{shown} is not a whole number", hint)
                return None
            value = int(number)
        if not least <= value <= most:
            self.fault(flag, "OUT_OF_RANGE", f"{shown} is not between {least} and {most}", hint)
            return None
        return value

    def quantity(self, flag: str, text: str | None, kind: Kind, *, above_zero: bool = True, most: float = math.inf) -> float | None:
        """One quantity in SI units, None where the flag is absent or wrong."""
        if text is None:
            return None
        try:
            value = parse_quantity(text, kind)
        except QuantityError as error:
            self.fault(flag, error.code, error.message, error.hint)
            return None
        if (above_zero and value <= 0.0) or value > most:
            bounds = (
                f"above 0 and at most {most:g}" if above_zero and math.isfinite(most) else "above 0" if above_zero else f"at most {most:g}"
            )
            self.fault(flag, "OUT_OF_RANGE", f"{_shown(text)} is out of range", f"write a {kind.value} {bounds}")
            return None
        return value

    def quantities(
        self, flag: str, texts: Sequence[str], kind: Kind, *, above_zero: bool = True, most: float = math.inf
    ) -> tuple[float, ...]:
        """Several quantities in SI units."""
        found = (self.quantity(flag, text, kind, above_zero=above_zero, most=most) for text in self.parts(flag, texts))
        return tuple(dict.fromkeys(value for value in found if value is not None))

    def number(self, flag: str, text: str | None, most: float) -> float | None:
        """One finite number from 0 to `most`, None where the flag is absent or wrong."""
        if text is None:
            return None
        hint = f"write a number from 0 to {most:g}"
        try:
            value = float(text)
        except ValueError:
            self.fault(flag, "NOT_A_QUANTITY", f"{_shown(text)} is not a number", hint)
            return None
        if not math.isfinite(value):
            self.fault(flag, "NOT_FINITE", f"{_shown(text)} is not a finite number", hint)
            return None
        if not 0.0 <= value <= most:
            self.fault(flag, "OUT_OF_RANGE", f"{_shown(text)} is out of range", hint)
            return None
        return value

    def choices(self, flag: str, texts: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
        """Words out of a list."""
        found = self.parts(flag, texts)
        for word in found:
            if word not in allowed:
                self.fault(flag, "WRONG_CHOICE", f"{_shown(word)} is not known here", f"write one of {', '.join(allowed)}")
        return tuple(word for word in found if word in allowed)

    def look_up(self, flag: str, texts: Sequence[str], find: Callable[[str], Found]) -> tuple[Found, ...]:
        """What several names stand for; a name that stands for nothing is told with the nearest ones."""
        found = (self.look_up_one(flag, text, find) for text in self.parts(flag, texts))
        return tuple(item for item in found if item is not None)

    def look_up_one(self, flag: str, text: str | None, find: Callable[[str], Found]) -> Found | None:
        """What one name stands for, None where the flag is absent or wrong."""
        if text is None:
            return None
        try:
            return find(text)
        except QuantityError as error:
            self.fault(flag, error.code, error.message, error.hint)
        except PlannerError as error:
            # A fault inside a file keeps its place there; a fault of the name belongs to the flag.
            self.faults += [
                item if item.place is not None and item.place.line is not None else replace(item, place=Place(path=flag))
                for item in error.diagnostics
            ]
        return None


def _shown(text: str) -> str:
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return repr(cut)

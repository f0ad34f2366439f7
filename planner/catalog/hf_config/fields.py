"""Typed reading of a config whose every value may be missing or wrong: faults are gathered, not raised one by one.

A Hugging Face config names the same thing in several ways over the years (`n_embd`, `d_model`, `hidden_size`), and writes `null` for "not used".
`Fields` asks by all the names, treats `null` as absent, checks type and range, and hands back a harmless stand-in after a fault so that
reading goes on and every fault of the file is told at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from planner.diagnostics import Diagnostic, Place, PlannerError

INVALID: Final = "MODEL_CONFIG_INVALID"
NOT_UNDERSTOOD: Final = "MODEL_NOT_UNDERSTOOD"

# No dimension of a published model comes near; a larger figure is a slip or an attack on memory.
LARGEST: Final = 2**24
MOST_LAYERS: Final = 4096


class Fields:
    """One mapping of a config, read by name, with the faults and notes met so far (shared with nested mappings)."""

    def __init__(self, config: Mapping[str, object], path: str = "", parent: Fields | None = None) -> None:
        self.config = config
        self.path = path
        self.faults: list[Diagnostic] = parent.faults if parent else []
        self.missing: dict[str, None] = parent.missing if parent else {}
        self.notes: dict[str, None] = parent.notes if parent else {}
        self.stand_ins: set[str] = parent.stand_ins if parent else set()

    def has(self, *names: str) -> bool:
        """Tell whether any of the names holds something other than null."""
        return any(self.config.get(name) is not None for name in names)

    def raw(self, *names: str) -> tuple[str, object]:
        """Give the first name that holds something, and what; the first name and None where none does."""
        for name in names:
            if self.config.get(name) is not None:
                return name, self.config[name]
        return names[0], None

    def note(self, text: str) -> None:
        """Remember something the reader of the architecture should be told; once each."""
        self.notes[text] = None

    def lack(self, *names: str) -> None:
        """Remember fields that are needed and absent."""
        for name in names:
            self.missing[self.path + name] = None

    def refuse(self, name: str, problem: str, hint: str = "") -> None:
        """Remember a value that cannot be right."""
        self.faults.append(Diagnostic(INVALID, f"{self.path}{name} {problem}", hint, place=Place(path=self.path + name)))

    def clash(self, name: str, problem: str, *others: str, hint: str = "") -> None:
        """Remember that `name` does not fit `others`, unless one of them is absent or wrong itself and a stand-in was compared."""
        if not self.stand_ins & {self.path + field for field in (name, *others)}:
            self.refuse(name, problem, hint)

    def unknown(self, name: str, problem: str, hint: str = "") -> None:
        """Remember a value that may be right but whose meaning is not known here."""
        self.faults.append(Diagnostic(NOT_UNDERSTOOD, f"{self.path}{name} {problem}", hint, place=Place(path=self.path + name)))

    def check(self, *names: str, minimum: int = 1, maximum: int = LARGEST) -> int | None:
        """Read a whole number, or None where absent; a wrong one is refused and read as `minimum`."""
        name, value = self.raw(*names)
        if value is None:
            return None
        number = whole(value)
        if number is None:
            self.refuse(name, f"is {_shown(value)}, not a whole number")
            self.stand_ins.add(self.path + names[0])
            return max(minimum, 1)
        if not minimum <= number <= maximum:
            self.refuse(name, f"is {number}, outside {minimum}..{maximum}")
            self.stand_ins.add(self.path + names[0])
            return max(minimum, 1)
        return number

    def need(self, *names: str, minimum: int = 1, maximum: int = LARGEST) -> int:
        """Read a whole number that has no default; its absence is remembered and 1 stands in."""
        number = self.check(*names, minimum=minimum, maximum=maximum)
        if number is None:
            self.lack(names[0])
            self.stand_ins.add(self.path + names[0])
            return 1
        return number

    def get(self, *names: str, default: int, minimum: int = 1, maximum: int = LARGEST) -> int:
        """Read a whole number with the default that the published modelling code gives it."""
        number = self.check(*names, minimum=minimum, maximum=maximum)
        if number is None:
            self.note(f"{self.path}{names[0]} absent: {default}, the default of the modelling code")
            return default
        return number

    def flag(self, *names: str, default: bool) -> bool:
        """Read true or false."""
        name, value = self.raw(*names)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.refuse(name, f"is {_shown(value)}, not true or false")
            return default
        return value

    def text(self, *names: str) -> str | None:
        """Read a non-empty string, or None where absent."""
        name, value = self.raw(*names)
        if value is None:
            return None
        if not isinstance(value, str) or not value:
            self.refuse(name, f"is {_shown(value)}, not a name")
            return None
        return value

    def items(self, *names: str) -> Sequence[object] | None:
        """Read a list, or None where absent."""
        name, value = self.raw(*names)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            self.refuse(name, f"is {_shown(value)}, not a list")
            return None
        return value

    def strings(self, *names: str) -> list[str] | None:
        """Read a list of strings, or None where absent."""
        values = self.items(*names)
        if values is None:
            return None
        if not all(isinstance(value, str) for value in values):
            self.refuse(self.raw(*names)[0], "holds something that is not a string")
            return None
        return [str(value) for value in values]

    def numbers(self, *names: str) -> list[int] | None:
        """Read a list of whole numbers (true and false count as 1 and 0), or None where absent."""
        values = self.items(*names)
        if values is None:
            return None
        read = [int(value) if isinstance(value, bool) else whole(value) for value in values]
        if any(value is None for value in read):
            self.refuse(self.raw(*names)[0], "holds something that is not a whole number")
            return None
        return [value for value in read if value is not None]

    def nested(self, *names: str) -> Fields | None:
        """Open a mapping inside this one, or None where absent; faults and notes go to the same place."""
        name, value = self.raw(*names)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.refuse(name, f"is {_shown(value)}, not a mapping")
            return None
        return Fields({str(key): inner for key, inner in value.items()}, f"{self.path}{name}.", self)

    def raise_faults(self, name: str) -> None:
        """Raise everything remembered, missing fields as one diagnostic.

        Raises
        ------
        PlannerError
            MODEL_NOT_UNDERSTOOD with the missing fields, MODEL_CONFIG_INVALID for each wrong value.
        """
        found = list(self.faults)
        if self.missing:
            fields = ", ".join(self.missing)
            message = f"the config of {name} lacks {'a field' if len(self.missing) == 1 else 'fields'} that memory or legality depends on: {fields}"
            found.append(
                Diagnostic(
                    NOT_UNDERSTOOD, message, "use the model's own unabridged config.json", place=Place(path=next(iter(self.missing)))
                )
            )
        if found:
            raise PlannerError(found)


def whole(value: object) -> int | None:
    """Read a whole number from what JSON may hold; booleans, fractions, NaN and strings are not numbers."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

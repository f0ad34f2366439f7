"""One disagreement between the keys of a document, and how parts of it are read that may be data or documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One disagreement: `path` leads from the part to the value at fault (empty = the part itself)."""

    code: str
    path: Path
    message: str
    hint: str


def get(part: object, key: str) -> Any:
    """Value of a key of a mapping or a document; None where it has none."""
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)


def whole(value: Any) -> int | None:
    """A whole number, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def items(value: Any) -> list[Any]:
    """Elements of a list, none for anything else."""
    return list(value) if isinstance(value, list | tuple) else []

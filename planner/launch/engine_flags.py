"""Options that the engines publish for one version, from the catalog, and which of the options of a command are not among them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from planner.catalog.read import read_table


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = read_table("engine_flags.json")
    return tables


def checked_version(engine: str) -> str:
    """Version whose options are known."""
    version: str = _tables()[engine]["version"]
    return version


def flags_of(engine: str) -> frozenset[str]:
    """Options of the engine's server in that version."""
    return frozenset(_tables()[engine]["flags"])


def unknown_flags(engine: str, words: Sequence[str]) -> list[str]:
    """Words that look like options and are none of the engine's."""
    known = flags_of(engine)
    return [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]

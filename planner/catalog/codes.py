"""Diagnostic codes: what each means and what usually mends it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources


@cache
def codes() -> Mapping[str, tuple[str, str]]:
    """Every diagnostic code with its meaning and its usual repair."""
    text = resources.files("planner.catalog").joinpath("data/codes.toml").read_text(encoding="utf-8")
    return {code: (entry["meaning"], entry["repair"]) for code, entry in tomllib.loads(text).items()}

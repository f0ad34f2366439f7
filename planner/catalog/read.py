"""Reads the catalog's own data files: JSON, one table a file, each read at most once and only when asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parent / "data"


def read_table(name: str) -> Any:
    """Read one file of `catalog/data` by its name relative to that directory."""
    return json.loads((DATA / name).read_bytes())

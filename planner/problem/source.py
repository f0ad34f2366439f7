"""A file that was read: its data, and where each key and value of it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from planner.diagnostics import Diagnostic, Place
from planner.problem.dotted_paths import Path, dotted

Mark = tuple[int, int]


@dataclass
class Source:
    """A file as plain data with places.

    `keys` and `values` hold line and column of each key and value, counted from 1; where `marks` is set they are only found when a place is
    first asked for. `faults` are what is wrong although the file could be read (duplicate keys, unknown tags), `set_paths` what was set
    from outside the file.
    """

    file: str | None
    data: Any = None
    keys: dict[Path, Mark] = field(default_factory=dict)
    values: dict[Path, Mark] = field(default_factory=dict)
    faults: list[Diagnostic] = field(default_factory=list)
    set_paths: dict[Path, str] = field(default_factory=dict)
    marks: Callable[[], tuple[dict[Path, Mark], dict[Path, Mark]]] | None = None

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Place of the value at `path` (of its key with `key`), or of the nearest part above that is written in the file."""
        self._find_marks()
        shown = dotted(self.data, path)
        for length in range(len(path), -1, -1):
            part = path[:length]
            if part in self.set_paths:
                return Place(file=self.set_paths[part], path=shown)
            mark = self.keys.get(part) if key and length == len(path) else None
            mark = mark or self.values.get(part)
            if mark is not None:
                return Place(self.file, *mark, path=shown)
        return Place(self.file, path=shown)

    def put(self, path: Path, value: Any, origin: str) -> None:
        """Set the value at `path`, making the mappings on the way; `origin` is shown in place of a file and line.

        What is changed is copied first: parts of a file may be shared through aliases.
        """
        self._find_marks()
        self.data = _with(self.data, path, value)
        for marks in (self.keys, self.values, self.set_paths):
            for known in [known for known in marks if known[: len(path)] == path]:
                del marks[known]
        self.set_paths[path] = origin

    def _find_marks(self) -> None:
        if self.marks is not None:
            self.keys, self.values = self.marks()
            self.marks = None


def _with(data: Any, path: Path, value: Any) -> Any:
    """Copy of `data` with `value` at `path`."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(first, int) and isinstance(data, list):
        return [_with(element, rest, value) if index == first else element for index, element in enumerate(data)]
    known = data if isinstance(data, dict) else {"name": data} if isinstance(data, str) and first != "name" else {}
    return {**known, first: _with(known.get(first), rest, value)}

"""JSON -> plain data, for files that programs write: much faster than reading them as YAML; places are found when they are asked for."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Any, Final

from planner.problem.dotted_paths import Path
from planner.problem.source import Mark

# What JSON and the YAML core schema read differently is left to YAML: halves of characters, numbers that YAML takes for text.
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_LONG_NUMBER: Final = re.compile(r"[0-9.eE+-]{64}")
# Deeper documents are no problem or topology; YAML's reader says where they go too deep.
DEEPEST: Final = 64


class _NotPlainError(ValueError):
    """The text is JSON to Python only, or its keys repeat."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _NotPlainError
    return found


def _refuse(constant: str) -> Any:
    raise _NotPlainError(constant)


def read_json(text: str) -> Any | None:
    """Data of a JSON document; None where it is no plain JSON, repeats a key, or would be read differently as YAML."""
    if _SURROGATE.search(text) or _LONG_NUMBER.search(text):
        return None
    try:
        data = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return data if _depth(data) <= DEEPEST else None


def _depth(data: Any) -> int:
    depth, level = 0, [data]
    while level:
        depth += 1
        level = [
            inner for value in level if isinstance(value, dict | list) for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return depth - 1


_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')


def json_marks(text: str) -> tuple[dict[Path, Mark], dict[Path, Mark]]:
    """Line and column of every key and every value of a JSON document that `read_json` has read."""
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    keys: dict[Path, Mark] = {}
    values: dict[Path, Mark] = {}
    # What is open, from the outside in: the path of each mapping or list, and the key or position that comes next in it.
    paths: list[Path] = []
    nexts: list[str | int | None] = []
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in "]}":
            paths.pop()
            nexts.pop()
        elif word == ",":
            last = nexts[-1]
            nexts[-1] = last + 1 if isinstance(last, int) else None
        elif word != ":":
            line = bisect_right(lines, token.start())
            mark = (line, token.start() - lines[line - 1] + 1)
            if paths and nexts[-1] is None:
                key = str(json.loads(word))
                nexts[-1] = key
                keys[*paths[-1], key] = mark
                continue
            path = (*paths[-1], nexts[-1]) if paths and nexts[-1] is not None else ()
            values[path] = mark
            if word in "[{":
                paths.append(path)
                nexts.append(0 if word == "[" else None)
    return keys, values

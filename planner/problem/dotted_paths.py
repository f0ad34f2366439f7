"""Paths into documents: tuples of keys and positions inside, dotted names outside (`deployments.chat.workload.concurrency`).

An element of a list goes by its `name` where it has one of its own, else by its position counted from 0. Names may hold dots
(`nodes.rack-1.example.org.price`), so reading a path compares it with the names that exist, the longest first.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

Path = tuple[str | int, ...]


def element_name(elements: Any, index: int) -> str:
    """How the element at `index` of a list is called in a path."""
    if isinstance(elements, list) and 0 <= index < len(elements):
        name = _name(elements[index])
        if name is not None and not name.isdigit() and sum(_name(other) == name for other in elements) == 1:
            return name
    return str(index)


def _name(element: Any) -> str | None:
    name = element.get("name") if isinstance(element, dict) else None
    return name if isinstance(name, str) and name else None


def dotted(data: Any, path: Path) -> str:
    """Dotted form of `path` in `data`; parts that the data does not have are written as they are."""
    parts = []
    for part in path:
        parts.append(element_name(data, part) if isinstance(part, int) else part)
        data = step(data, part)
    return ".".join(parts)


def step(data: Any, part: str | int) -> Any:
    """Value under one key or position, None where there is none."""
    if isinstance(data, dict):
        return data.get(part)
    if isinstance(data, list) and isinstance(part, int) and 0 <= part < len(data):
        return data[part]
    return None


def find(data: Any, path: Path) -> Any:
    """Value at `path`, None where there is none."""
    for part in path:
        data = step(data, part)
    return data


def choices(data: Any) -> dict[str, str | int]:
    """What may come next in a dotted path at `data`, with the key or position it stands for."""
    if isinstance(data, dict):
        return {key: key for key in data if isinstance(key, str)}
    if isinstance(data, list):
        names = [_name(element) for element in data]
        counts = Counter(names)
        known: dict[str, str | int] = {str(index): index for index in range(len(data))}
        return known | {name: index for index, name in enumerate(names) if name is not None and not name.isdigit() and counts[name] == 1}
    return {}


def follow(data: Any, text: str) -> tuple[Path, str]:
    """Follow a dotted path through `data` as far as it exists.

    Returns
    -------
    tuple
        The path found, and the rest of the text that leads nowhere ("" when all of it was found).
    """
    path: Path = ()
    rest = text
    while rest:
        known = choices(data)
        fitting = [name for name in known if rest == name or rest.startswith(f"{name}.")]
        if not fitting:
            break
        name = max(fitting, key=len)
        path = (*path, known[name])
        data = step(data, known[name])
        rest = rest[len(name) + 1 :]
    return path, rest

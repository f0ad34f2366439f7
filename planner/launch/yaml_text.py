"""Plain data as YAML: keys in their given order, text quoted wherever a reader of YAML 1.1 or 1.2 could take it for something else.

Written here because a thousand replicas are a million lines' worth of values, which the general library takes minutes for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

# Text that needs no quotes: no blank, nothing that begins another kind of value, colons only before something else than a blank.
_PLAIN: Final = re.compile(r"-{0,2}[A-Za-z_/][A-Za-z0-9_./@+=,()$\[\]-]*(?::[A-Za-z0-9_./@+=,()\[\]-]+)*")
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def yaml_text(data: Mapping[str, Any]) -> str:
    """One document."""
    return "\n".join(_mapping(data, "")) + "\n"


def yaml_documents(documents: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Several documents, each with the comment that stands above it ("" = none)."""
    parts = []
    for comment, data in documents:
        head = "".join(f"# {line}\n" for line in comment.splitlines())
        parts.append(head + yaml_text(data))
    return "---\n".join(parts)


def _mapping(data: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in data.items():
        yield from _entry(f"{indent}{_text(str(key))}:", value, indent)


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    """Lines of a key or a list's dash with what belongs to it."""
    inner = indent + "  "
    if isinstance(value, Mapping) and value:
        yield head
        yield from _mapping(value, inner)
    elif isinstance(value, list | tuple) and value:
        yield head
        for item in value:
            yield from _item(item, inner)
    elif isinstance(value, str) and "\n" in value:
        yield f"{head} {'|' if value.endswith(chr(10)) else '|-'}"
        yield from (f"{inner}{line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _item(value: Any, indent: str) -> Iterator[str]:
    """Lines of one item of a list; a mapping begins on the line of its dash."""
    if isinstance(value, Mapping) and value:
        lines = list(_mapping(value, indent + "  "))
        yield f"{indent}- {lines[0][len(indent) + 2 :]}"
        yield from lines[1:]
    elif isinstance(value, list | tuple) and value:
        lines = [line for item in value for line in _item(item, indent + "  ")]
        yield f"{indent}- {lines[0][len(indent) + 2 :]}"
        yield from lines[1:]
    else:
        yield from _entry(f"{indent}-", value, indent)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    return json.dumps(value)


def _text(value: str) -> str:
    return value if _PLAIN.fullmatch(value) and value.lower() not in _WORDS else json.dumps(value, ensure_ascii=False)

"""YAML from schedulers and tools -> plain values with their lines: several documents a file, every scalar as the text it is.

Node names such as 0012 or 1e3 must stay names, so no scalar is interpreted. Events are read one by one and bounded; aliases share what they point to,
and what they would add up to when written out is bounded too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from planner.topology.importers.lines import check_size, refusal

LARGEST: Final = 2 * 2**20
MOST_VALUES: Final = 200_000
DEEPEST: Final = 48


@dataclass(slots=True)
class Value:
    """A scalar (str), list or mapping with the line it starts at; `size` counts the values in it, aliases written out."""

    content: Any
    line: int
    size: int = 1

    def get(self, key: str) -> Value | None:
        """Value of a key, None where this is no mapping or has no such key."""
        return self.content.get(key) if isinstance(self.content, dict) else None

    def text(self, key: str) -> str:
        """Text of a key, empty where it is absent or no scalar."""
        found = self.get(key)
        return found.content if found is not None and isinstance(found.content, str) else ""

    def items(self, key: str | None = None) -> list[Value]:
        """Elements of a list, or of the list under a key; a scalar counts as a list of one."""
        found = self if key is None else self.get(key)
        if found is None or isinstance(found.content, dict):
            return []
        if isinstance(found.content, str):
            return [found] if found.content else []
        elements: list[Value] = found.content
        return elements

    def pairs(self, key: str) -> list[tuple[str, Value]]:
        """Keys and values of the mapping under a key."""
        found = self.get(key)
        return list(found.content.items()) if found is not None and isinstance(found.content, dict) else []


class _Builder:
    def __init__(self, file: str) -> None:
        self.file = file
        self.documents: list[Value] = []
        self.open: list[tuple[Value, str | None]] = []
        self.keys: list[str | None] = []
        self.anchors: dict[str, Value] = {}

    def take(self, event: Any) -> None:
        kind = type(event).__name__
        line = event.start_mark.line + 1
        if kind == "ScalarEvent":
            self.add(Value(event.value, line), event.anchor)
        elif kind in {"MappingStartEvent", "SequenceStartEvent"}:
            if len(self.open) >= DEEPEST:
                raise refusal("NESTED_TOO_DEEP", f"nests more than {DEEPEST} levels", "check the file", self.file, line)
            value = Value({} if kind == "MappingStartEvent" else [], line)
            if self.wants_key():
                raise refusal("BAD_KEY", "a list or mapping cannot be a key", "write a word as the key", self.file, line)
            self.open.append((value, event.anchor))
            self.keys.append(None)
        elif kind in {"MappingEndEvent", "SequenceEndEvent"}:
            value, anchor = self.open.pop()
            self.keys.pop()
            self.add(value, anchor)
        elif kind == "AliasEvent":
            known = self.anchors.get(event.anchor)
            if known is None:
                raise refusal("UNKNOWN_ALIAS", f"`*{event.anchor}` points to nothing above", "write the value out", self.file, line)
            self.add(known, None)

    def wants_key(self) -> bool:
        return bool(self.open) and isinstance(self.open[-1][0].content, dict) and self.keys[-1] is None

    def add(self, value: Value, anchor: str | None) -> None:
        if anchor is not None:
            self.anchors[anchor] = value
        if not self.open:
            self.documents.append(value)
            return
        if self.wants_key():
            if not isinstance(value.content, str):
                raise refusal("BAD_KEY", "a list or mapping cannot be a key", "write a word as the key", self.file, value.line)
            self.keys[-1] = value.content
            return
        parent = self.open[-1][0]
        parent.size += value.size
        if parent.size > MOST_VALUES:
            message = f"more than {MOST_VALUES:,} values, aliases written out"
            raise refusal("TOO_MANY_VALUES", message, "fold host names into host lists", self.file, value.line)
        if isinstance(parent.content, dict):
            parent.content.setdefault(self.keys[-1], value)
            self.keys[-1] = None
        else:
            parent.content.append(value)


def read_values(text: str, file: str) -> list[Value]:
    """Documents of a YAML or JSON file; empty ones are left out.

    Raises
    ------
    PlannerError
        YAML_SYNTAX, NESTED_TOO_DEEP, TOO_MANY_VALUES, BAD_KEY, UNKNOWN_ALIAS, FILE_TOO_LARGE, EMPTY_FILE.
    """
    import yaml

    check_size(text, file, LARGEST)
    builder = _Builder(file)
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        line = mark.line + 1 if mark is not None else None
        raise refusal("YAML_SYNTAX", f"this is not YAML: {problem}", "check the file with a YAML linter", file, line) from None
    except (ValueError, IndexError, OverflowError, AttributeError, TypeError) as error:
        # Malformed directives and escapes trip the parser itself.
        raise refusal("YAML_SYNTAX", f"this is not YAML: {error}", "check the file with a YAML linter", file) from None
    return [document for document in builder.documents if document.content not in ("", {}, [])]

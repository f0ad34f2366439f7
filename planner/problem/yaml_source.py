"""YAML 1.2 (JSON included) -> plain data, with the place of every key and value.

One pass over the parser's events builds the data by the core schema (`yes` is text, `0o14` is 12, there are no dates and no merge keys)
and notes where each key and value stands, so that whatever is found wrong later can be pointed at. Aliases share what they point to;
what they would add up to when written out is bounded. Duplicate keys are all reported, with both places.

Source: YAML Ain't Markup Language version 1.2.2, section 10.3 (core schema).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.problem.dotted_paths import Path, dotted
from planner.problem.json_source import DEEPEST, json_marks, read_json
from planner.problem.source import Mark, Source
from planner.problem.yaml_complaints import syntax_error

MOST_NODES: Final = 200_000
# The parser takes some seconds for so many characters; JSON, which is read otherwise, may be longer.
LONGEST_YAML: Final = 2 * 2**20
LONGEST_NUMBER: Final = 64

_INT: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_TAG: Final = "tag:yaml.org,2002:"


def plain_scalar(text: str) -> Any:
    """Value of an unquoted scalar by the YAML 1.2 core schema: null, bool, int, float, else the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "-+.0123456789" and len(text) <= LONGEST_NUMBER:
        if _INT.fullmatch(text):
            return int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


@dataclass(slots=True)
class _Open:
    """A mapping or list being read. `path` is None inside a part that is thrown away; `size` counts what it holds, aliases written out."""

    container: Any
    path: Path | None
    anchor: str | None
    mark: Mark = (1, 1)
    key: str | None = None
    child: Path | None = None
    size: int = 1


class _Builder:
    def __init__(self, file: str | None) -> None:
        self.source = Source(file)
        self.open: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.root: list[Any] = []

    def fault(self, code: str, mark: Mark, message: str, hint: str, path: Path | None = None) -> Diagnostic:
        shown = dotted(self.root[0], path) if path and self.root else ""
        found = Diagnostic(code, message, hint, place=Place(self.source.file, *mark, path=shown))
        self.source.faults.append(found)
        return found

    def stop(self, code: str, mark: Mark, message: str, hint: str) -> PlannerError:
        self.fault(code, mark, message, hint)
        return PlannerError(self.source.faults)

    def take(self, event: Any) -> None:
        """Handle one event of the parser."""
        kind = type(event).__name__
        mark = (event.start_mark.line + 1, event.start_mark.column + 1)
        if kind == "ScalarEvent":
            self.scalar(event, mark)
        elif kind in {"MappingStartEvent", "SequenceStartEvent"}:
            self.begin({} if kind == "MappingStartEvent" else [], event, mark)
        elif kind in {"MappingEndEvent", "SequenceEndEvent"}:
            closed = self.open.pop()
            if closed.anchor is not None:
                self.anchors[closed.anchor] = (closed.container, closed.size)
            if self.open:
                self.grow(closed.size, mark)
        elif kind == "AliasEvent":
            self.alias(event.anchor, mark)
        elif kind == "DocumentStartEvent" and self.root:
            raise self.stop("SEVERAL_DOCUMENTS", mark, "a second document begins here", "keep one document a file")

    def wants_key(self) -> bool:
        return bool(self.open) and isinstance(self.open[-1].container, dict) and self.open[-1].key is None

    def scalar(self, event: Any, mark: Mark) -> None:
        text: str = _whole_characters(event.value)
        if self.wants_key():
            self.key(text, mark)
            if event.anchor is not None:
                self.anchors[event.anchor] = (text, 1)
            return
        value: Any = text
        tag = str(event.ctag) if event.ctag is not None else None
        if tag in {None, "None"}:
            value = plain_scalar(text) if event.implicit[0] else text
        elif tag not in {f"{_TAG}str", "!"}:
            value = self.tagged(text, tag or "", mark)
        self.add(value, mark)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, 1)

    def tagged(self, text: str, tag: str, mark: Mark) -> Any:
        value = plain_scalar(text)
        kinds: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}
        wanted = kinds.get(tag.removeprefix(_TAG))
        if wanted is None:
            self.fault("UNKNOWN_TAG", mark, f"the tag `{tag[:40]}` is not known here", "remove it")
            return text
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            self.fault("UNKNOWN_TAG", mark, f"`{text[:40]}` is no {tag.removeprefix(_TAG)}, as its tag says", "remove the tag")
            return text
        return value

    def key(self, text: str, mark: Mark) -> None:
        top = self.open[-1]
        top.key = text
        top.child = None if top.path is None else (*top.path, text)
        if top.path is None:
            return
        path = (*top.path, text)
        if text in top.container:
            first = self.source.keys[path]
            self.fault(
                "DUPLICATE_KEY",
                mark,
                f"`{text[:60]}` is written twice; first at line {first[0]}, column {first[1]}",
                "remove one of them",
                path,
            )
            top.child = None
        else:
            self.source.keys[path] = mark

    def add(self, value: Any, mark: Mark) -> Path | None:
        """Put a value where it belongs, note its place, and return its path (None where it is thrown away)."""
        if not self.open:
            self.root.append(value)
            self.source.values[()] = mark
            return ()
        top = self.open[-1]
        if isinstance(top.container, list):
            child = None if top.path is None else (*top.path, len(top.container))
            top.container.append(value)
        else:
            child = top.child
            assert top.key is not None
            top.container.setdefault(top.key, value)
            top.key = None
        if child is not None:
            self.source.values[child] = mark
        self.grow(1, mark)
        return child

    def grow(self, size: int, mark: Mark) -> None:
        self.open[-1].size += size
        if self.open[-1].size > MOST_NODES:
            message = f"more than {MOST_NODES:,} values, aliases written out"
            raise self.stop("TOO_MANY_VALUES", mark, message, "write alike nodes once, as a host list")

    def begin(self, container: Any, event: Any, mark: Mark) -> None:
        if self.wants_key():
            raise self.stop("BAD_KEY", mark, "a list or mapping cannot be a key", "write a word as the key")
        if len(self.open) >= DEEPEST:
            raise self.stop("NESTED_TOO_DEEP", mark, f"more than {DEEPEST} levels are nested here", "check for a missing closing bracket")
        tag = str(event.ctag) if event.ctag is not None else "None"
        if tag not in {"None", "!", f"{_TAG}map", f"{_TAG}seq"}:
            self.fault("UNKNOWN_TAG", mark, f"the tag `{tag[:40]}` is not known here", "remove it")
        path = self.add(container, mark)
        self.open.append(_Open(container, path, event.anchor, mark))
        if event.anchor is not None:
            self.anchors.pop(event.anchor, None)

    def alias(self, name: str, mark: Mark) -> None:
        if any(part.anchor == name for part in self.open) and name not in self.anchors:
            raise self.stop("RECURSIVE_ALIAS", mark, f"`*{name}` stands inside what it points to", "write the value out")
        if name not in self.anchors:
            raise self.stop("UNKNOWN_ALIAS", mark, f"`*{name}` points to no `&{name}` above", f"put `*{name}` in quotes if it is text")
        value, size = self.anchors[name]
        if self.wants_key():
            if not isinstance(value, str):
                raise self.stop("BAD_KEY", mark, f"`*{name}` is no text and cannot be a key", "write a word as the key")
            self.key(value, mark)
            return
        self.add(value, mark)
        if self.open:
            self.grow(size, mark)


def _whole_characters(text: str) -> str:
    r"""Join the two halves of characters that JSON writes as \ud83d\ude00; halves without a partner become the replacement character."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def read_yaml(text: str, file: str | None) -> Source:
    """Plain data of one YAML or JSON document, with the place of every key and value.

    Raises
    ------
    PlannerError
        YAML_SYNTAX, SEVERAL_DOCUMENTS, EMPTY_FILE, FILE_TOO_LARGE and what else keeps the rest from being read, after all that was
        found before it.
    """
    if text.lstrip("\n\r\t ").startswith(("{", "[")):
        text = text.replace("\t", " ")  # JSON may be indented with tabs, YAML may not
        data = read_json(text)
        if data is not None:
            return Source(file, data, marks=lambda: json_marks(text))
    if len(text) > LONGEST_YAML:
        raise _stopped(
            file,
            [],
            "FILE_TOO_LARGE",
            f"holds more than {LONGEST_YAML:,} characters",
            "write alike nodes once, as a host list, or write JSON",
        )
    return _read_events(text, file)


def _read_events(text: str, file: str | None) -> Source:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    builder = _Builder(file)
    faults = builder.source.faults
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            builder.take(event)
    except YAMLError as error:
        raise PlannerError([*faults, syntax_error(error, file, builder.open[-1].mark if builder.open else None)]) from None
    except (ValueError, IndexError, OverflowError, AttributeError, TypeError, AssertionError) as error:
        # The parser trips over some malformed directives and escapes instead of reporting them.
        raise _stopped(file, faults, "YAML_SYNTAX", f"this is not YAML: {error}", "check the file with a YAML linter") from None
    source = builder.source
    source.data = builder.root[0] if builder.root else None
    if source.data is None:
        raise _stopped(file, faults, "EMPTY_FILE", "holds nothing but blanks and comments", "`planner init` writes files to start from")
    return source


def _stopped(file: str | None, faults: list[Diagnostic], code: str, message: str, hint: str) -> PlannerError:
    return PlannerError([*faults, Diagnostic(code, message, hint, place=Place(file))])

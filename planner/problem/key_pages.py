"""The page of every file key: type, default, example and meaning, from the JSON Schemas and example files of each kind.

The example files together hold every key (`planner/problem/examples/`), so a key without an example is a fault that a test tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from planner.problem.schema import Kind, json_schema
from planner.problem.yaml_source import read_yaml
from planner.quantities.units import EXAMPLES
from planner.quantities.units import Kind as Quantity

KINDS: Final[tuple[Kind, ...]] = ("problem", "topology", "profile")

WORDS: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
    "array": "list",
}
BOUNDS: Final = (("minimum", "from {}"), ("exclusiveMinimum", "above {}"), ("maximum", "to {}"), ("exclusiveMaximum", "below {}"))
INLINE: Final = 70
"""Longest example that a table shows [characters]; longer ones are those of the parts."""

INTRODUCTION = """# File keys

Every key of a problem, a topology and a profile file. `planner reference keys` prints this page from the documents themselves; `planner schema problem` prints the same
as JSON Schema, which editors use. Keys that are not listed are refused with the nearest one that is. What keys ask of each other is told by `planner validate`.

Quantities carry their unit: `60ms`, `80GB`, `400Gb/s` (bits) or `50GB/s` (bytes), `4/s`, `$24/h`, `70%`. A unit of another kind is refused.
"""

HEADS: Final[dict[Kind, str]] = {
    "problem": "Problem",
    "topology": "Topology",
    "profile": "Profile",
}


@dataclass(frozen=True)
class Part:
    """One mapping of a file: its place as a dotted path without positions, its schema, and the examples found there."""

    place: str
    schema: Mapping[str, Any]
    examples: tuple[Any, ...]

    @property
    def anchor(self) -> str:
        """Anchor of the part's heading, as Markdown makes it."""
        return re.sub(r"[^a-z0-9_-]+", "", self.place.lower().replace(" ", "-"))


def examples(kind: Kind) -> tuple[Any, ...]:
    """Plain data of the files that hold every key of a kind: one, and more where keys exclude one another (`KIND_*.yaml`)."""
    folder = resources.files("planner.problem").joinpath("examples")
    names = sorted(file.name for file in folder.iterdir() if re.fullmatch(rf"{kind}(_\w+)?\.yaml", file.name))
    return tuple(read_yaml(folder.joinpath(name).read_text(encoding="utf-8"), None).data for name in names)


def keys_page() -> str:
    """Markdown page of all keys of all kinds of files."""
    lines = [INTRODUCTION]
    for kind in KINDS:
        lines.append(f"## {HEADS[kind]}\n")
        found = list(parts(kind))
        anchors = {id(part.schema): part for part in found}
        for number, part in enumerate(found):
            if number:
                lines.append(f"### {part.place}\n")
                lines.append(sentence(part.schema.get("description", "")) + "\n")
            lines.extend(_table(part, anchors, json_schema_parts(kind)))
    return "\n".join(lines).rstrip() + "\n"


def json_schema_parts(kind: Kind) -> Mapping[str, Any]:
    """Named parts of a kind's schema; the same objects at every call."""
    found: Mapping[str, Any] = _schema(kind).get("$defs", {})
    return found


def keys_without_example(kind: Kind) -> list[str]:
    """Keys that the example files of a kind do not hold, as dotted paths."""
    return [
        f"{part.place}.{key}"
        for part in parts(kind)
        for key in part.schema["properties"]
        if not any(isinstance(given, Mapping) and key in given for given in part.examples)
    ]


_SCHEMAS: dict[Kind, Mapping[str, Any]] = {}


def _schema(kind: Kind) -> Mapping[str, Any]:
    if kind not in _SCHEMAS:
        _SCHEMAS[kind] = json_schema(kind)
    return _SCHEMAS[kind]


def parts(kind: Kind) -> Iterator[Part]:
    """Mappings of a kind of file, outer ones first; a topology inside a problem is left to its own kind."""
    schema = _schema(kind)
    named = json_schema_parts(kind)
    todo = [Part(kind, schema, examples(kind))]
    seen: set[int] = set()
    while todo:
        part = todo.pop(0)
        if id(part.schema) in seen:
            continue
        seen.add(id(part.schema))
        yield part
        for key, value in part.schema["properties"].items():
            inner = _mappings(value, named)
            given = tuple(item for outer in part.examples if isinstance(outer, Mapping) and key in outer for item in _items(outer[key]))
            for below in inner:
                if kind == "problem" and below is named.get("TopologyDocument"):
                    continue
                place = key if part.place == kind else f"{part.place}.{key}"
                form = below["properties"].get("kind", {}).get("const")
                if form is not None:
                    place = f"{place} {form}"
                fitting = tuple(item for item in given if form is None or (isinstance(item, Mapping) and item.get("kind") == form))
                todo.append(Part(place, below, fitting))


def _items(value: Any) -> list[Any]:
    """Whatever a key holds that may be a mapping: the value, the items of a list, or the values of a mapping of names."""
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping):
        return [value, *value.values()]
    return [value]


def _mappings(schema: Mapping[str, Any], named: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Mappings with keys of their own that a value may be or hold."""
    if "$ref" in schema:
        return [named[schema["$ref"].rsplit("/", 1)[-1]]]
    found: list[Mapping[str, Any]] = []
    for word in ("anyOf", "oneOf"):
        for choice in schema.get(word, ()):
            found.extend(_mappings(choice, named))
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), Mapping):
            found.extend(_mappings(schema[word], named))
    return found


def _table(part: Part, anchors: Mapping[int, Part], named: Mapping[str, Any]) -> Iterator[str]:
    yield "| key | type | default | example | meaning |"
    yield "| --- | --- | --- | --- | --- |"
    required = part.schema.get("required", ())
    for key, value in part.schema["properties"].items():
        default = "required" if key in required else _default(value)
        cells = (f"`{key}`", _type(value, anchors, named), default, _example(part, key), sentence(value.get("description", "")))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def sentence(text: str) -> str:
    """First paragraph of a description, on one line, safe inside a table."""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split()).replace("<", "&lt;")


def _type(schema: Mapping[str, Any], anchors: Mapping[int, Part], named: Mapping[str, Any]) -> str:
    """Type of a value in words."""
    quantity = next((kind for kind in Quantity if list(EXAMPLES[kind]) == schema.get("examples")), None)
    if quantity is not None:
        return quantity.value
    if "$ref" in schema:
        part = anchors.get(id(named[schema["$ref"].rsplit("/", 1)[-1]]))
        return f"[{part.place}](#{part.anchor})" if part is not None else "[topology](#topology)"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    choices = [choice for word in ("anyOf", "oneOf") for choice in schema.get(word, ()) if choice.get("type") != "null"]
    if choices:
        return " or ".join(dict.fromkeys(_type(choice, anchors, named) for choice in choices))
    if schema.get("type") == "array":
        inner = schema.get("items")
        return f"list of {_type(inner, anchors, named)}" if isinstance(inner, Mapping) else "list"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"mapping of names to {_type(schema['additionalProperties'], anchors, named)}"
    word = WORDS.get(str(schema.get("type")), "anything")
    bounds = [text.format(f"{schema[bound]:,}") for bound, text in BOUNDS if bound in schema]
    return " ".join((word, *bounds)) if word in {"number", "whole number"} else word


def _default(schema: Mapping[str, Any]) -> str:
    """Value of a key that is left out; a dash where there is none, or where its parts have their own."""
    value = schema.get("default")
    if isinstance(value, float) and list(EXAMPLES[Quantity.SECONDS]) == schema.get("examples"):
        return f"`{value:g}s`"
    if value is None or value == "" or value in ([], {}):
        return "–"
    if isinstance(value, Mapping):
        shown = {key: inner for key, inner in value.items() if inner is not None}
        return f"`{_flow(shown)}`"
    return f"`{_flow(value)}`"


def _example(part: Part, key: str) -> str:
    for given in part.examples:
        if isinstance(given, Mapping) and key in given:
            text = _flow(given[key])
            return f"`{text}`" if len(text) <= INLINE else "see its keys"
    return "–"


def _flow(value: Any) -> str:
    """Value as one line of YAML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    return f'"{text}"' if isinstance(value, str) and re.search(r"[\[\]{},:#]|^[0-9.]+$", text) and "://" not in text else text

"""Topology document -> YAML with comments: where it is from, what was learnt, assumed and not learnt, and the source of every node group."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from planner.diagnostics import Diagnostic
from planner.topology.importers.assembling import Assembled, remarks_by_weight
from planner.topology.importers.facts import Reading

_WIDTH: Final = 140
# Words that are safe unquoted: no YAML indicator, nothing a core-schema reader takes for a number, a boolean or null.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def scalar(value: Any) -> str:
    """A value in YAML's flow style, quoted where it could be read as something else; JSON's quoting is YAML's."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) is not None and value.lower() not in _WORDS
        return value if plain or re.fullmatch(r"\d+(?:\.\d+)?Gb/s|\$\d+(?:\.\d+)?/h", value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {scalar(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(scalar(item) for item in value) + "]"
    return json.dumps(value)


def _wrapped(text: str, indent: str) -> Iterable[str]:
    line = ""
    for word in text.split():
        if line and len(indent) + len(line) + 1 + len(word) > _WIDTH:
            yield f"{indent}{line}"
            indent = re.sub(r"- ?$", "", indent).ljust(len(indent))
            line = ""
        line = f"{line} {word}".strip()
    if line:
        yield f"{indent}{line}"


def _comment(text: str) -> str:
    """Text that stays one line of a comment, whatever a file's names hold."""
    return re.sub(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd]+", " ", text)


def _header(readings: Sequence[Reading], diagnostics: Sequence[Diagnostic]) -> Iterable[str]:
    files = ", ".join(f"{reading.file} ({reading.kind})" for reading in readings)
    yield from _wrapped(_comment(f"Imported by `planner topology import` from {files}."), "# ")
    notes, warnings = remarks_by_weight(diagnostics)
    sections = (
        ("Learnt", [f"{reading.file}: {sentence}" for reading in readings for sentence in reading.learnt]),
        ("Assumed", [_sentence(item) for item in notes]),
        ("Not learnt, or to be checked", [_sentence(item) for item in warnings]),
    )
    for title, sentences in sections:
        if sentences:
            yield "#"
            yield f"# {title}"
            for sentence in sentences:
                yield from _wrapped(_comment(sentence), "#   - ")


def _sentence(item: Diagnostic) -> str:
    where = f"{item.place}: " if item.place is not None and str(item.place) else ""
    return f"{where}{item.message}; {item.hint} [{item.code}]"


def topology_yaml(assembled: Assembled, readings: Sequence[Reading]) -> str:
    """Text of the topology file."""
    data = assembled.data
    lines = list(_header(readings, assembled.diagnostics))
    lines += [f"name: {scalar(data['name'])}", "nodes:"]
    for group, source in zip(data["nodes"], assembled.sources, strict=True):
        lines.extend(_wrapped(_comment(source), "  # "))
        entry = scalar(group)
        if len(entry) <= _WIDTH - 4:
            lines.append(f"  - {entry}")
            continue
        for number, (key, value) in enumerate(group.items()):
            lines.append(f"  {'-' if number == 0 else ' '} {key}: {scalar(value)}")
    fabric = dict(data["fabric"])
    ratios = fabric.pop("leaf_oversubscription", None)
    if ratios is None:
        lines.append(f"fabric: {scalar(fabric)}")
    else:
        lines.append("fabric:")
        lines += [f"  {key}: {scalar(value)}" for key, value in fabric.items()]
        lines.append("  leaf_oversubscription: # cables to hosts : uplinks")
        lines += [f"    {scalar(leaf)}: {scalar(ratio)}" for leaf, ratio in ratios.items()]
    for state in ("taken", "failed"):
        if state in data:
            lines.append(f"{state}:")
            lines += [f"  - {scalar(entry)}" for entry in data[state]]
    return "\n".join(lines) + "\n"

"""`--set PATH=VALUE`: change one value of a problem or its topology before it is checked.

Paths use names: `deployments.chat.workload.concurrency=64`, `nodes.h100-[01-02].price=$20/h`, `fabric.oversubscription=2`. A path may name a
key that the file leaves out. Values are YAML: `64`, `60ms`, `[4, 8]`, `{weights: fp8}`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.problem.document_types import holds_text_only, keys_of, open_mapping, type_at
from planner.problem.documents import Problem
from planner.problem.dotted_paths import Path, choices, dotted, find, follow, step
from planner.problem.source import Source
from planner.problem.yaml_source import plain_scalar, read_yaml
from planner.topology.document import TopologyDocument

MOST_PATHS: Final = 5000


@dataclass(frozen=True, slots=True)
class Override:
    """One change: where, and the text of the new value."""

    path: str
    text: str

    @property
    def origin(self) -> str:
        """What diagnostics show in place of a file name."""
        return f"--set {self.path}={self.text}"[:200]

    def value(self) -> Any:
        """The new value, read as YAML.

        Raises
        ------
        PlannerError
            When brackets or quotes are not closed.
        """
        text = self.text.strip()
        return read_yaml(text, self.origin).data if text[:1] in {"{", "[", '"', "'"} else plain_scalar(text)


def read_overrides(texts: Sequence[str]) -> tuple[list[Override], list[Override], list[Diagnostic]]:
    """Sort overrides into those of the problem and those of the topology; faults are the texts that are neither."""
    problem: list[Override] = []
    topology: list[Override] = []
    faults: list[Diagnostic] = []
    for text in texts:
        path, separator, value = text.partition("=")
        if not separator or not path.strip():
            hint = "write PATH=VALUE, for example deployments.chat.workload.concurrency=64"
            faults.append(Diagnostic("OVERRIDE_NOT_UNDERSTOOD", f"`{text[:100]}` is no PATH=VALUE", hint, place=Place("--set")))
            continue
        override = Override(path.strip(), value)
        first, _, rest = override.path.partition(".")
        if first == "topology" and rest:
            topology.append(Override(rest, value))
        elif first in TopologyDocument.model_fields and first not in Problem.model_fields:
            topology.append(override)
        else:
            problem.append(override)
    return problem, topology, faults


def apply_overrides(source: Source, root: type[BaseModel], overrides: Sequence[Override], start: Path = ()) -> list[Diagnostic]:
    """Change `source` below `start`, where a document of class `root` stands; returns what could not be changed."""
    faults: list[Diagnostic] = []
    for override in overrides:
        try:
            _apply(source, root, override, start)
        except PlannerError as error:
            faults += error.diagnostics
    return faults


def _apply(source: Source, root: type[BaseModel], override: Override, start: Path) -> None:
    data = find(source.data, start)
    path, rest = follow(data, override.path)
    if rest:
        path = (*path, *_new_keys(data, root, path, rest, override))
    elif not path:
        raise _unknown(data, root, override)
    kind = type_at(root, path)
    value = override.text.strip() if holds_text_only(kind) and not override.text.strip().startswith(('"', "'")) else override.value()
    source.put((*start, *path), value, override.origin)


def _new_keys(data: Any, root: type[BaseModel], path: Path, rest: str, override: Override) -> Path:
    """Keys that the document allows below `path` although the file leaves them out."""
    if open_mapping(type_at(root, path)):
        return (rest,)
    keys: Path = ()
    while rest:
        kind = type_at(root, (*path, *keys))
        if open_mapping(kind):
            return (*keys, rest)
        first, _, rest = rest.partition(".")
        if first not in keys_of(kind):
            raise _unknown(data, root, override)
        keys = (*keys, first)
    return keys


def _unknown(data: Any, root: type[BaseModel], override: Override) -> PlannerError:
    close = difflib.get_close_matches(override.path, list(_valid_paths(data, root)), n=3, cutoff=0.5)
    path, _ = follow(data, override.path)
    known = keys_of(type_at(root, path)) or tuple(dict.fromkeys(choices(find(data, path))))
    here = f"`{dotted(data, path)}`" if path else "the top"
    hint = f"nearest: {', '.join(close)}" if close else f"under {here} there are: {', '.join(str(key) for key in known[:20]) or 'no keys'}"
    message = f"there is no `{override.path[:100]}`"
    return PlannerError([Diagnostic("UNKNOWN_PATH", message, hint, place=Place("--set", path=override.path[:100]))])


def _valid_paths(data: Any, root: type[BaseModel]) -> Iterator[str]:
    """Paths that may be set: what the file holds, and what the document allows beside it."""
    todo: list[Path] = [()]
    count = 0
    while todo and count < MOST_PATHS:
        path = todo.pop(0)
        here = find(data, path)
        if isinstance(here, list):
            parts: list[str | int] = list(range(len(here))) if any(isinstance(element, dict) for element in here) else []
        else:
            parts = list(dict.fromkeys((*keys_of(type_at(root, path)), *(here if isinstance(here, dict) else ()))))
        for part in parts:
            count += 1
            yield dotted(data, (*path, part))
            if isinstance(step(here, part), dict | list) or keys_of(type_at(root, (*path, part))):
                todo.append((*path, part))

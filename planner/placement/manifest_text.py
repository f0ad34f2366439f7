"""Kubernetes manifests: several YAML documents in one file, their containers, what GPUs a pod asks for, and the command it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.placement.engine_command import EngineCommand, engine_command
from planner.placement.gpu_words import slices
from planner.placement.shell_text import Word, commands
from planner.problem.dotted_paths import Path
from planner.problem.source import Source
from planner.problem.yaml_source import read_yaml

MOST_DOCUMENTS: Final = 500
_BREAK: Final = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
GPUS_ANNOTATION: Final = "planner/gpus"
"""GPUs of the pods of a template in rank order (`h100-01:[0,1,2,3]`), as `planner launch` writes them."""
_WHOLE_GPUS: Final = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "gpu")


@dataclass
class Pod:
    """What one pod asks for: whole GPUs (None = it does not say), slices of GPUs, and the engine command it runs, each with its place.

    `host` is the node it is bound to, `hosts` those that pods of its template may be on, in order; `named_gpus` what its annotation `planner/gpus` says.
    """

    gpus: int | None
    place: Place
    slices: int = 0
    command: EngineCommand | None = None
    host: str | None = None
    hosts: tuple[str, ...] = ()
    named_gpus: str | None = None
    faults: list[Diagnostic] = field(default_factory=list)


def documents(text: str, file: str) -> list[Source]:
    """Documents of a manifest file that hold keys; every line keeps its number in the file.

    Raises
    ------
    PlannerError
        What is wrong with the first document that cannot be read; TOO_MANY_VALUES for too many documents.
    """
    found: list[Source] = []
    starts = [0, *(match.end() for match in _BREAK.finditer(text))]
    ends = [*(match.start() for match in _BREAK.finditer(text)), len(text)]
    if len(starts) > MOST_DOCUMENTS:
        raise PlannerError([Diagnostic("TOO_MANY_VALUES", f"more than {MOST_DOCUMENTS} documents", "split the file", place=Place(file))])
    for start, end in zip(starts, ends, strict=True):
        part = text[start:end]
        if not re.sub(r"#[^\n]*", "", part).strip():
            continue
        # Blank lines stand for what comes before, so that places are those of the whole file.
        before = text.count("\n", 0, start)
        source = read_yaml("\n" * before + part, file)
        if isinstance(source.data, dict):
            found.append(source)
    return found


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def whole(value: Any) -> int | None:
    """Whole number that a value is or spells ("8"), None for others."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value <= 10**6 else None
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,6}", value) else None


def pod_of(source: Source, spec: Mapping[str, Any], path: Path, containers_key: str = "containers") -> Pod:
    """What the pod whose spec stands at `path` asks for; all its containers together."""
    pod = Pod(None, source.place(path))
    selector = mapping(spec.get("nodeSelector")).get("kubernetes.io/hostname")
    named = spec.get("nodeName", selector)
    pod.host = named if isinstance(named, str) else None
    pod.hosts = (pod.host,) if pod.host is not None else _affinity_hosts(spec)
    around = source.data
    for part in path[:-1]:
        around = around[part]
    noted = mapping(mapping(mapping(around).get("metadata")).get("annotations")).get(GPUS_ANNOTATION)
    pod.named_gpus = noted if isinstance(noted, str) and path[-1:] == ("spec",) else None
    containers = spec.get(containers_key)
    for index, container in enumerate(containers if isinstance(containers, list) else ()):
        take_container(pod, source, mapping(container), (*path, containers_key, index))
    return pod


def _affinity_hosts(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Nodes that a required node affinity lists by host name, in its order."""
    required = mapping(mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = required.get("nodeSelectorTerms")
    for term in terms if isinstance(terms, list) else ():
        expressions = mapping(term).get("matchExpressions")
        for expression in expressions if isinstance(expressions, list) else ():
            one = mapping(expression)
            values = one.get("values")
            if one.get("key") == "kubernetes.io/hostname" and one.get("operator") == "In" and isinstance(values, list):
                return tuple(value for value in values if isinstance(value, str))
    return ()


def take_container(pod: Pod, source: Source, container: Mapping[str, Any], path: Path) -> None:
    """Add one container's GPUs and command to its pod."""
    take_resources(pod, source, mapping(container.get("resources")), (*path, "resources"))
    command = _command(source, container, path)
    if command is not None and pod.command is None:
        pod.command = command


def take_resources(pod: Pod, source: Source, resources: Mapping[str, Any], path: Path) -> None:
    """Add the GPUs of a `resources` part: its limits, else its requests."""
    part = "limits" if mapping(resources.get("limits")) else "requests"
    for name, value in mapping(resources.get(part)).items():
        place = source.place((*path, part, name), key=True)
        is_slice = slices(name.removeprefix("nvidia.com/"))
        if name not in _WHOLE_GPUS and not is_slice:
            continue
        count = whole(value)
        if count is None:
            hint = 'write a whole number: "8"'
            pod.faults.append(Diagnostic("WRONG_VALUE", f"`{str(value)[:40]}` is no number of GPUs", hint, place=place))
        elif is_slice:
            pod.slices += count
            pod.place = place
        else:
            pod.gpus = (pod.gpus or 0) + count
            pod.place = place


def _command(source: Source, container: Mapping[str, Any], path: Path) -> EngineCommand | None:
    """Engine command of a container: `command` and `args` as one list of words, or a script given to a shell."""
    words: list[Word] = []
    for key in ("command", "args"):
        value = container.get(key)
        listed = value if isinstance(value, list) else [value] if value is not None else []
        words += [
            Word(str(text), source.place((*path, key, index) if isinstance(value, list) else (*path, key)))
            for index, text in enumerate(listed)
        ]
    environment = _environment(source, container, path)
    found = engine_command(words, environment) if words else None
    if found is not None:
        return found
    for word in words:  # the script after `sh -c`
        for script in commands(word.text, ""):
            placed = [Word(part.text, word.place) for part in script]
            found = engine_command(placed, environment)
            if found is not None:
                return found
    return None


def _environment(source: Source, container: Mapping[str, Any], path: Path) -> dict[str, Word]:
    found: dict[str, Word] = {}
    listed = container.get("env")
    for index, entry in enumerate(listed if isinstance(listed, list) else ()):
        name, value = mapping(entry).get("name"), mapping(entry).get("value")
        if isinstance(name, str) and isinstance(value, str | int):
            found[name] = Word(str(value), source.place((*path, "env", index, "value")))
    return found


def walk_pods(data: Any, path: Path = (), depth: int = 0) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Pod specs anywhere in a document (parts with `containers`), with their paths."""
    if depth > 12:
        return
    if isinstance(data, dict):
        if isinstance(data.get("containers"), list):
            yield data, path
            return
        for key, value in data.items():
            yield from walk_pods(value, (*path, key), depth + 1)
    elif isinstance(data, list):
        for index, value in enumerate(data[:200]):
            yield from walk_pods(value, (*path, index), depth + 1)

"""Scenarios: named changes to a problem, written as PATH=VALUE, one by one or as a grid."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.problem.yaml_source import plain_scalar

MOST_SCENARIOS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the path as the user wrote it, and the text of the new value, which may be relative (`+20%`, `x2`)."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}={self.text}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Changes that hold together under one name; `place` is where they are written."""

    name: str
    changes: tuple[Change, ...]
    place: Place = field(default_factory=Place)


def text_of(value: Any) -> str:
    """Text that reads back as `value` in PATH=VALUE: a YAML scalar as it is, everything else as JSON, which YAML includes."""
    if isinstance(value, str) and value and value == value.strip() and value[0] not in "{[\"'" and plain_scalar(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def read_change(text: str, option: str) -> Change:
    """Read PATH=VALUE.

    Raises
    ------
    PlannerError
        OVERRIDE_NOT_UNDERSTOOD when there is no path or no `=`.
    """
    path, separator, value = text.partition("=")
    if not separator or not path.strip():
        hint = "write PATH=VALUE, for example deployments.chat.load=x2"
        raise PlannerError([Diagnostic("OVERRIDE_NOT_UNDERSTOOD", f"`{text[:100]}` is no PATH=VALUE", hint, place=Place(option))])
    return Change(path.strip(), value.strip())


def split_values(text: str) -> list[str]:
    """Split at commas outside brackets and quotes: `1,[4,8],{a: 1, b: 2}` has three parts."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth <= 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def grid_scenarios(
    axes: Sequence[tuple[str, Sequence[str]]], fixed: Sequence[Change] = (), name: str = "", place: Place | None = None
) -> list[Scenario]:
    """Every combination of the values of the axes, the last axis running fastest; `fixed` changes hold in all of them.

    Raises
    ------
    PlannerError
        TOO_MANY_SCENARIOS.
    """
    place = place or Place()
    count = 1
    for _, values in axes:
        count *= len(values)
    _check_count(count, place)
    found = []
    for values in product(*(values for _, values in axes)):
        changes = tuple(Change(path, value) for (path, _), value in zip(axes, values, strict=True))
        label = ", ".join(map(str, changes))
        found.append(Scenario(f"{name}: {label}" if name else label, (*fixed, *changes), place))
    return found


def _check_count(count: int, place: Place) -> None:
    if count > MOST_SCENARIOS:
        message = f"{count:,} scenarios are asked for, at most {MOST_SCENARIOS:,} are solved in one run"
        raise PlannerError([Diagnostic("TOO_MANY_SCENARIOS", message, "give fewer values, or split the grid", place=place)])


def option_scenarios(patches: Iterable[str], grids: Iterable[str]) -> list[Scenario]:
    """Scenarios of the options `--patch PATH=VALUE` and `--grid PATH=V1,V2`: all patches hold together, in every point of the grid.

    Raises
    ------
    PlannerError
        With every option that cannot be read.
    """
    faults: list[Diagnostic] = []
    fixed: list[Change] = []
    axes: list[tuple[str, Sequence[str]]] = []
    for text in patches:
        try:
            fixed.append(read_change(text, "--patch"))
        except PlannerError as error:
            faults += error.diagnostics
    for text in grids:
        try:
            change = read_change(text, "--grid")
        except PlannerError as error:
            faults += error.diagnostics
        else:
            axes.append((change.path, split_values(change.text)))
    if faults:
        raise PlannerError(faults)
    if axes:
        return grid_scenarios(axes, fixed, place=Place("--grid"))
    return [Scenario(", ".join(map(str, fixed)), tuple(fixed), Place("--patch"))] if fixed else []


def mapped_scenarios(given: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> list[Scenario]:
    """Scenarios given in code: `{"twice the load": {"load": "x2"}}`, or a list of changes that are named by what they change."""
    if isinstance(given, Mapping):
        named = [(str(name), changes) for name, changes in given.items()]
    else:
        named = [("", changes) for changes in given]
    found = []
    for name, changes in named:
        read = tuple(Change(path, text_of(value)) for path, value in changes.items())
        found.append(Scenario(name or ", ".join(map(str, read)) or "as it is", read, Place("scenarios")))
    return found


def check_names(scenarios: Sequence[Scenario]) -> None:
    """Refuse more scenarios than are solved in one run, and two of one name.

    Raises
    ------
    PlannerError
        TOO_MANY_SCENARIOS, DUPLICATE_NAME.
    """
    _check_count(len(scenarios), Place())
    counts = Counter(scenario.name for scenario in scenarios)
    twice = {name for name, count in counts.items() if count > 1}
    last = {scenario.name: scenario for scenario in scenarios if scenario.name in twice}
    if last:
        raise PlannerError(
            Diagnostic(
                "DUPLICATE_NAME", f"{counts[name]} scenarios are named `{name[:100]}`", "give each a name of its own", place=item.place
            )
            for name, item in last.items()
        )

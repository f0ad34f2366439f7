"""A problem with a scenario's changes, loaded as if its files had been written so; every fault of all scenarios before anything is solved."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from planner.candidates.prices import pool_prices
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.problem.documents import Problem
from planner.problem.dotted_paths import Path
from planner.problem.load import LoadedProblem, load_problem, load_source, read_problem
from planner.problem.overrides import Override, apply_overrides, read_overrides
from planner.problem.source import Source
from planner.problem.source_text import STDIN
from planner.topology.document import TopologyDocument
from planner.whatif.node_counts import names_of, resized, resized_group, without_nodes
from planner.whatif.scenarios import Change, Scenario
from planner.whatif.short_paths import COUNT_KEYS, Setting, short_paths, unfold

MOST_FAULTS: Final = 100


@dataclass(frozen=True)
class Base:
    """The problem as it is: its data with the topology written into it, and what it loads to; `path` tells what it is relative to."""

    path: str
    data: dict[str, Any]
    loaded: LoadedProblem


def open_base(path: str, overrides: Sequence[str] = ()) -> Base:
    """Read and load the problem that scenarios change.

    Raises
    ------
    PlannerError
        With every fault of the problem's files, at their places.
    """
    if path not in STDIN:
        loaded = load_problem(path, overrides)
        source = read_problem(path)
    else:
        source = read_problem(path)
        loaded = load_source(Source(source.file, source.data, dict(source.keys), dict(source.values), list(source.faults)), path, overrides)
    mine, of_topology, _ = read_overrides(overrides)
    for root, changes, start in ((Problem, mine, ()), (TopologyDocument, of_topology, ("topology",))):
        apply_overrides(source, root, changes, start)
    return Base(path, source.data, loaded)


def patched(base: Base, scenario: Scenario) -> LoadedProblem:
    """The problem with the changes of a scenario.

    Raises
    ------
    PlannerError
        With every change that cannot be made, every pair that contradict each other, and every fault of the changed problem.
    """
    settings, faults = _settings(base, scenario)
    faults += _contradictions(settings)
    if faults:
        raise PlannerError(_told(faults, scenario))
    source = Source(None, base.data)
    for root, kind, start in (("problem", Problem, ()), ("topology", TopologyDocument, ("topology",))):
        plain = [setting for setting in settings if setting.root == root and setting.count is None and setting.lost is None]
        for setting in plain:
            found = apply_overrides(source, kind, [Override(setting.path, setting.text)], start)
            faults += [_with_short_paths(fault, setting.change, base.data) for fault in found]
    if faults:
        raise PlannerError(_told(faults, scenario))
    source.data = {**source.data, "topology": _with_counts(source.data["topology"], settings, base)}
    try:
        loaded = load_source(source, base.path)
        pool_prices(loaded)  # a price that is missing is told before anything is solved, too
    except PlannerError as error:
        raise PlannerError(_told([_as_changed(fault, settings) for fault in error.diagnostics], scenario)) from None
    return loaded


def check_all(base: Base, scenarios: Sequence[Scenario], tell: Callable[[int], None] | None = None) -> list[str]:
    """Digest of every scenario's problem, in their order; `tell` hears how many are checked.

    Raises
    ------
    PlannerError
        With the faults of all scenarios; a fault that several share is told once.
    """
    digests: list[str] = []
    faults: dict[tuple[str, str], tuple[Diagnostic, int]] = {}
    for number, scenario in enumerate(scenarios):
        if tell is not None:
            tell(number)
        try:
            digests.append(patched(base, scenario).sha256)
        except PlannerError as error:
            for fault in error.diagnostics:
                key = (fault.code, str(fault.place.path if fault.place else "") + fault.message)
                first, count = faults.get(key, (fault, 0))
                faults[key] = (first, count + 1)
    if faults:
        found = [
            fault if count == 1 else replace(fault, message=f"{fault.message} (and so in {count - 1} more scenarios)")
            for fault, count in faults.values()
        ]
        if len(found) > MOST_FAULTS:
            more = Diagnostic("MORE_FAULTS", f"at least {len(found) - MOST_FAULTS} more faults are not shown", "mend these first")
            found = [*found[:MOST_FAULTS], more]
        raise PlannerError(found)
    return digests


def _settings(base: Base, scenario: Scenario) -> tuple[list[Setting], list[Diagnostic]]:
    settings: list[Setting] = []
    faults: list[Diagnostic] = []
    for change in scenario.changes:
        try:
            settings += unfold(change, base.data)
        except PlannerError as error:
            faults += [_with_short_paths(fault, change, base.data) for fault in error.diagnostics]
    return settings, faults


def _contradictions(settings: Sequence[Setting]) -> list[Diagnostic]:
    """Pairs of changes that cannot both hold: one value set to two, or a part replaced and a value inside it set."""
    first: dict[Path, Setting] = {}
    faults: list[Diagnostic] = []
    for setting in settings:
        for length in range(1, len(setting.where) + 1):
            _compare(first.get(setting.where[:length]), setting, faults)
        inside = [other for where, other in first.items() if where[: len(setting.where)] == setting.where and where != setting.where]
        for other in inside:
            _compare(other, setting, faults)
        group = setting.where[:3]
        for where, other in first.items():
            empties = 0 in {setting.count, other.count}
            if where[:3] == group and where != setting.where and len(group) == 3 and group[1] in {"nodes", "build"} and empties:
                faults.append(_contradiction(other, setting, "no node is left for the other"))
        first.setdefault(setting.where, setting)
    return list(dict.fromkeys(faults))


def _compare(earlier: Setting | None, setting: Setting, faults: list[Diagnostic]) -> None:
    if earlier is not None and (earlier.where != setting.where or earlier.text != setting.text):
        faults.append(_contradiction(earlier, setting, "they set the same value"))


def _contradiction(earlier: Setting, later: Setting, why: str) -> Diagnostic:
    message = f"`{str(earlier.change)[:100]}` and `{str(later.change)[:100]}` contradict each other: {why}"
    return Diagnostic(
        "CONTRADICTORY_CHANGES", message, "keep one of them, or make two scenarios", place=Place(path=later.change.path[:100])
    )


def _with_counts(topology: Any, settings: Sequence[Setting], base: Base) -> Any:
    """Topology data with groups of another size, and with what is lost among the failed GPUs."""
    changed = dict(topology)
    gone: set[str] = set()
    names = {name for group in changed.get("nodes") or [] for name in names_of(group.get("name"))}
    for part in ("nodes", "build"):
        counts = {int(setting.where[2]): setting.count for setting in settings if setting.count is not None and setting.where[1] == part}
        if not counts:
            continue
        groups = []
        for index, group in enumerate(changed[part]):
            count = counts.get(index)
            resized_to = group if count is None else _resized(group, part, count, names)
            if part == "nodes" and count is not None:
                before = names_of(group.get("name"))
                gone |= set(before) - (set(resized(before, count, names)) if count else set())
            if resized_to is not None:
                groups.append(resized_to)
        changed[part] = groups
    for key in ("taken", "failed"):
        if key in changed and gone:
            changed[key] = without_nodes(changed[key], frozenset(gone))
    lost = [name for setting in settings if setting.lost is not None for name in nodes_named(setting.lost, base)]
    if lost:
        failed = changed.get("failed") or []
        changed["failed"] = [*([failed] if isinstance(failed, str) else failed), *lost]
    return changed


def _resized(group: dict[str, Any], part: str, count: int, names: Iterable[str]) -> dict[str, Any] | None:
    """A group with `count` nodes, or a builder with `count` nodes or racks; None where none is left."""
    if count == 0:
        return None
    if part == "nodes":
        return resized_group(group, count, names)
    key = COUNT_KEYS.get(str(group.get("kind")), "nodes")
    changed = {**group, key: count}
    if key == "nodes":
        changed["scalable_units"] = -(-count // int(group.get("nodes_per_unit", 32)))
    return changed


def nodes_named(lost: str, base: Base) -> list[str]:
    """Nodes that a loss names: those of a leaf by its name, else what is written."""
    fabric = base.loaded.fabric
    inventory = fabric.inventory
    leaves = {fabric.leaf_name(leaf): leaf for leaf in range(len(inventory.leaf_names))}
    leaf = leaves.get(lost)
    if leaf is None or not lost:
        return [lost]
    return [inventory.names[row] for row in (inventory.leaf == leaf).nonzero()[0].tolist()]


def _with_short_paths(fault: Diagnostic, change: Change, data: Any) -> Diagnostic:
    """An unknown path is also compared with the short ones."""
    if fault.code != "UNKNOWN_PATH":
        return fault
    near = difflib.get_close_matches(change.path, short_paths(data), n=2, cutoff=0.75)
    known = fault.hint.removeprefix("nearest: ").split(", ") if fault.hint.startswith("nearest: ") else []
    ranked = sorted({*near, *known}, key=lambda path: (-difflib.SequenceMatcher(None, change.path, path).ratio(), path))
    hint = f"nearest: {', '.join(ranked[:3])}" if ranked else fault.hint
    return replace(fault, hint=hint, place=Place(path=change.path[:100]))


def _as_changed(fault: Diagnostic, settings: Sequence[Setting]) -> Diagnostic:
    """A fault of the changed problem is told at the change that made it, where one did."""
    path = fault.place.path if fault.place is not None else ""
    short = path.removeprefix("topology.")
    for setting in settings:
        if setting.lost is not None and short.startswith("failed"):
            return replace(fault, place=Place(path="lose"))
        if setting.lost is None and (short == setting.path or short.startswith(f"{setting.path}.")):
            return replace(fault, place=Place(path=setting.change.path))
    return replace(fault, place=Place(path=short))


def _told(faults: Iterable[Diagnostic], scenario: Scenario) -> list[Diagnostic]:
    """Faults at the place of their scenario, with its name where it has one of its own."""
    where = scenario.place
    named = scenario.name != ", ".join(map(str, scenario.changes))
    return [
        replace(
            fault,
            message=f"scenario `{scenario.name[:80]}`: {fault.message}" if named and where.file != "--grid" else fault.message,
            place=Place(where.file, where.line, where.column, fault.place.path if fault.place is not None else ""),
        )
        for fault in faults
    ]

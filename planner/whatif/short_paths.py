"""Paths that stand for several values: `*`, `load`, `prices`, `deployments.chat.load`, `deployments.chat.context`, `nodes.h100-[01-02].count`.

Each change is unfolded into changes of single values of the problem or its topology, relative values are worked out, and what cannot be
is told with the nearest path that exists.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.problem.documents import Problem
from planner.problem.dotted_paths import Path, element_name, find, follow
from planner.problem.overrides import Override, apply_overrides
from planner.problem.source import Source
from planner.topology.document import TopologyDocument
from planner.whatif.node_counts import names_of
from planner.whatif.relative import factor_of, scaled
from planner.whatif.scenarios import Change

_STAR: Final = re.compile(r"(?:^|(?<=\.))\*(?=\.|$)")
LOADS: Final = ("concurrency", "request_rate")
CONTEXT: Final = (("workload", "prompt_tokens"), ("workload", "output_tokens"), ("memory", "max_model_len"))
PRICES: Final = ("price", "gpu_price")
COUNT_KEYS: Final = {"hgx": "nodes", "nvl72": "racks"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One single value to be set: `where` identifies it, `path` and `text` are an override below `root` (problem or topology).

    `count` is the number of nodes of a group (`where` then ends in "count"); `lost` names what fails.
    """

    where: Path
    root: str
    path: str
    text: str
    change: Change
    count: int | None = None
    lost: str | None = None


def unfold(change: Change, data: Any) -> list[Setting]:
    """Single values that `change` sets in the problem `data`, whose topology is written into it.

    Raises
    ------
    PlannerError
        UNKNOWN_PATH, RELATIVE_WITHOUT_VALUE or COUNT_NOT_UNDERSTOOD.
    """
    if change.path == "lose":
        return [Setting(("lose", change.text), "topology", "lose", change.text, change, lost=change.text)]
    root, below, path = _root(change.path, data)
    concrete = list(_without_stars(below, path))
    if not concrete:
        raise unknown_path(change.path, data)
    several = len(concrete) > 1 or concrete != [path]
    found: list[Setting] = []
    for each in concrete:
        for single in _single_values(root, below, each, change, data):
            setting = _resolved(single, root, below, change, skip=several or single != each)
            if setting is not None:
                found.append(setting)
    if not found:
        raise _no_amount(change)
    return found


def _root(path: str, data: Any) -> tuple[str, Any, str]:
    """Document that a path belongs to, its data, and the path inside it."""
    first, _, rest = path.partition(".")
    topology = data.get("topology")
    if first == "topology" and rest and isinstance(topology, dict):
        return "topology", topology, rest
    if first == "prices" or (first in TopologyDocument.model_fields and first not in Problem.model_fields):
        return "topology", topology if isinstance(topology, dict) else {}, path
    return "problem", data, path


def _without_stars(data: Any, path: str) -> Iterator[str]:
    star = _STAR.search(path)
    if star is None:
        yield path
        return
    before, after = path[: star.start()].rstrip("."), path[star.end() :]
    where, rest = follow(data, before)
    here = find(data, where)
    names = (
        [element_name(here, index) for index in range(len(here))]
        if isinstance(here, list)
        else list(here)
        if isinstance(here, dict)
        else []
    )
    for name in () if rest else names:
        yield from _without_stars(data, f"{before}.{name}{after}".strip("."))


def _single_values(root: str, data: Any, path: str, change: Change, whole: Any) -> list[str]:
    """Paths of the single values that a short path stands for; the path itself where it is none."""
    if root == "topology":
        if path != "prices":
            return [path]
        _relative_only(change)
        groups = [(part, index) for part in ("nodes", "build") for index in range(len(_list(data, part)))]
        return [f"{part}.{element_name(data[part], index)}.{key}" for part, index in groups for key in PRICES if key in data[part][index]]
    deployments = _list(data, "deployments")
    if path in {"load", "context"}:
        names = [element_name(deployments, index) for index in range(len(deployments))]
        return [single for name in names for single in _single_values(root, data, f"deployments.{name}.{path}", change, whole)]
    where, rest = follow(data, path)
    if len(where) == 2 and where[0] == "deployments" and rest in {"load", "context"}:
        deployment = find(data, where)
        name = path.removesuffix(f".{rest}")
        if rest == "load":
            return [f"{name}.workload.{key}" for key in LOADS if find(deployment, ("workload", key)) is not None]
        _relative_only(change)
        return [f"{name}.{part}.{key}" for part, key in CONTEXT if find(deployment, (part, key)) is not None]
    return [path]


def _list(data: Any, key: str) -> list[Any]:
    found = data.get(key) if isinstance(data, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _relative_only(change: Change) -> None:
    if factor_of(change.text) is None:
        message = f"`{change.path}` stands for several values, which `{change.text[:60]}` cannot all be"
        raise PlannerError([_fault("RELATIVE_WITHOUT_VALUE", message, "write +20%, -10% or x2, or set each by its own path", change)])


def _resolved(path: str, root: str, data: Any, change: Change, *, skip: bool) -> Setting | None:
    """One value with its relative text worked out; None where `skip` allows a value that is not there."""
    factor = factor_of(change.text)
    where, rest = follow(data, path)
    identity: Path = (root, *where, *(rest.split(".") if rest else ()))
    if root == "topology" and len(where) == 2 and where[0] in {"nodes", "build"} and rest == "count":
        return Setting(identity, root, path, change.text, change, count=_count(find(data, where), str(where[0]), change))
    if factor is None:
        return Setting(identity, root, path, change.text, change)
    text = scaled(find(data, where), factor) if not rest else None
    if text is None:
        if skip:
            return None
        kind = TopologyDocument if root == "topology" else Problem
        faults = apply_overrides(Source(None, data), kind, [Override(path, "1")]) if rest else []
        raise PlannerError(faults) if faults else _no_amount(change)
    return Setting(identity, root, path, text, change)


def _no_amount(change: Change) -> PlannerError:
    message = f"`{change.path}` has no amount in the problem that `{change.text[:60]}` could be taken of"
    return PlannerError([_fault("RELATIVE_WITHOUT_VALUE", message, "write the new value itself, with its unit", change)])


def _count(group: Any, part: str, change: Change) -> int:
    now = nodes_of(group, part)
    factor = factor_of(change.text)
    text = scaled(now, factor) if factor is not None else change.text
    if text is None or not re.fullmatch(r"[0-9]{1,6}", text):
        what = "racks" if part == "build" and group.get("kind") == "nvl72" else "nodes"
        message = f"`{change.text[:60]}` is no number of {what}"
        raise PlannerError([_fault("COUNT_NOT_UNDERSTOOD", message, f"write a whole number; there are {now} now", change)])
    return int(text)


def nodes_of(group: Any, part: str) -> int:
    """Nodes of a group (racks of an NVL72 builder) as the data says, without checking it."""
    if part == "nodes":
        return len(names_of(group.get("name")))
    if group.get("kind") == "nvl72":
        return int(group.get("racks", 1))
    nodes = group.get("nodes")
    return int(nodes) if isinstance(nodes, int) else int(group.get("scalable_units", 1)) * int(group.get("nodes_per_unit", 32))


def _fault(code: str, message: str, hint: str, change: Change) -> Diagnostic:
    return Diagnostic(code, message, hint, place=Place(path=change.path[:100]))


def unknown_path(path: str, data: Any, hint: str = "") -> PlannerError:
    """Error for a path that leads nowhere, with the nearest that does."""
    near = difflib.get_close_matches(path, short_paths(data), n=3, cutoff=0.6)
    hint = (
        f"nearest: {', '.join(near)}"
        if near
        else hint or "paths begin with deployments, nodes, build, fabric, load, context, prices or lose"
    )
    return PlannerError([Diagnostic("UNKNOWN_PATH", f"there is no `{path[:100]}`", hint, place=Place(path=path[:100]))])


def short_paths(data: Any) -> list[str]:
    """Short paths that hold in a problem."""
    found = ["load", "context", "prices", "lose"]
    deployments = _list(data, "deployments")
    for index in range(len(deployments)):
        name = f"deployments.{element_name(deployments, index)}"
        found += [f"{name}.load", f"{name}.context"]
    for part in ("nodes", "build"):
        groups = _list(data.get("topology"), part)
        found += [f"{part}.{element_name(groups, index)}.count" for index in range(len(groups))]
    return found

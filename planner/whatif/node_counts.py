"""Another number of nodes in a group: host lists, failure domains and marks on GPUs that grow and shrink with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from planner.topology.host_lists import HostListError, expand_hosts
from planner.topology.node_groups import MOST_NODES

_NUMBERED: Final = re.compile(r"(.*?)([0-9]+)([^0-9]*)", re.DOTALL)


def names_of(text: Any) -> tuple[str, ...]:
    """Names a host list stands for; empty where it is none, which loading the topology reports."""
    try:
        return expand_hosts(text, MOST_NODES) if isinstance(text, str) else ()
    except HostListError:
        return ()


def resized(names: Sequence[str], count: int, taken: Iterable[str] = ()) -> tuple[str, ...]:
    """First `count` of `names`, continued with new ones numbered on from the last; `taken` names are left out."""
    if count <= len(names):
        return tuple(names[:count])
    used = {*names, *taken}
    last = _NUMBERED.fullmatch(names[-1]) if names else None
    prefix, number, width, suffix = (
        (last[1], int(last[2]), len(last[2]), last[3]) if last else (f"{names[-1] if names else 'node'}-", 1, 1, "")
    )
    found = list(names)
    while len(found) < count:
        number += 1
        name = f"{prefix}{number:0{width}d}{suffix}"
        if name not in used:
            found.append(name)
    return tuple(found)


def host_list(names: Sequence[str]) -> str:
    """Host list of names in their order, with runs of consecutive numbers folded: h100-[01-12]."""
    runs: list[tuple[str, str, str, str]] = []  # prefix, first number, last number, suffix
    for name in names:
        found = _NUMBERED.fullmatch(name)
        if found is None:
            runs.append((name, "", "", ""))
            continue
        prefix, number, suffix = found[1], found[2], found[3]
        if runs:
            before, first, last, after = runs[-1]
            # 9 is followed by 10, 09 by 10 and 099 by 100: a range keeps the width of its first number.
            alike = len(last) == len(number) or (len(last) < len(number) and not first.startswith("0") and not number.startswith("0"))
            follows = last and (before, after) == (prefix, suffix) and alike and int(number) == int(last) + 1
            if follows:
                runs[-1] = (before, first, number, after)
                continue
        runs.append((prefix, number, number, suffix))
    return ",".join(
        f"{prefix}{first}{suffix}" if first == last else f"{prefix}[{first}-{last}]{suffix}" for prefix, first, last, suffix in runs
    )


def resized_group(group: Mapping[str, Any], count: int, taken: Iterable[str]) -> dict[str, Any]:
    """A node group with `count` nodes (at least 1); failure domains with one name per node go on as the names do."""
    names = names_of(group.get("name"))
    changed = {**group, "name": host_list(resized(names, count, taken))}
    domains = group.get("failure_domains")
    if isinstance(domains, dict):
        changed["failure_domains"] = {kind: _resized_domains(text, len(names), count) for kind, text in domains.items()}
    return changed


def _resized_domains(text: Any, before: int, count: int) -> Any:
    domains = names_of(text)
    return host_list(resized(domains, count)) if len(domains) == before and before > 1 else text


def without_nodes(entries: Any, gone: frozenset[str]) -> Any:
    """Entries of `taken` or `failed` without nodes that are `gone`; what cannot be read stays, and is reported when the topology is built."""
    if isinstance(entries, str):
        entries = [entries]
    if not isinstance(entries, list) or not gone:
        return entries
    kept: list[Any] = []
    for entry in entries:
        hosts, colon, indices = entry.partition(":") if isinstance(entry, str) else ("", "", "")
        names = names_of(hosts.strip())
        left = [name for name in names if name not in gone]
        if len(left) == len(names):
            kept.append(entry)
        elif left:
            kept.append(f"{host_list(left)}{colon}{indices}")
    return kept

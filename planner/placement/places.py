"""Paths into a plan document -> places in the file the placement was written in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.diagnostics import Diagnostic, Place
from planner.placement.given_plan import Placed

_RANK = re.compile(r"(.*\.replicas\.[0-9]+)\.ranks\.([0-9]+)")


def places_of(placed: Sequence[Placed], deployments: Mapping[str, Place]) -> dict[str, Place]:
    """Place of every deployment and replica by its path; ranks are looked up in `given`."""
    found = {f"deployments.{name}": place for name, place in deployments.items()}
    found |= {one.path: one.given.place for one in placed}
    return found


def located(diagnostics: Iterable[Diagnostic], places: Mapping[str, Place], placed: Mapping[str, Placed], file: str) -> list[Diagnostic]:
    """The same diagnostics with file, line and column beside their paths; a fault of a part that is not written points at the part around it."""
    found = []
    for item in diagnostics:
        path = item.place.path if item.place is not None else ""
        if item.place is not None and item.place.line is not None:
            found.append(item)
            continue
        place = _nearest(path, places, placed) or Place(file)
        found.append(replace(item, place=Place(place.file or file, place.line, place.column, path or place.path)))
    return found


def _nearest(path: str, places: Mapping[str, Place], placed: Mapping[str, Placed]) -> Place | None:
    rank = _RANK.match(path)
    if rank is not None and rank[1] in placed:
        gpus = placed[rank[1]].given.gpus
        if int(rank[2]) < len(gpus):
            return gpus[int(rank[2])].place
    while path:
        if path in places:
            return places[path]
        path = path.rpartition(".")[0]
    return None

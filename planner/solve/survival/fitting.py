"""Places by CP-SAT where placing one replica after another fails: for given counts pool by pool, or together with the choice of counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.solve import cpsat
from planner.solve.decomposition.combining import Choices
from planner.solve.decomposition.split import Parts
from planner.solve.instance import Container, IntArray
from planner.solve.program import Program
from planner.solve.result import Result
from planner.solve.survival.places import Places, Room

PLACES = 60_000
"""Most variables of one program."""


class Sites:
    """Variables y[s, bin] of a program: replicas of a shape inside a bin, or groups of it there where its replicas may span bins.

    A group of a replica that spans counts as the whole replica wherever it is, which is more than is lost where two groups share a domain: safe for finding places, and never
    used for a bound.
    """

    def __init__(self, room: Room, program: Program) -> None:
        self.room, self.program = room, program
        self.of: dict[tuple[int, int], int] = {}
        self.groups: dict[tuple[int, int], int] = {}

    def add(self, shape: int, most: int) -> dict[int, int]:
        """Add the places of one shape as an expression of its replicas."""
        question, groups = self.room.question, self.room.groups[shape]
        if not question.local[shape]:
            return self._spanning(shape, most)
        held = question.slots(shape) // groups
        variables = {}
        for chosen in np.flatnonzero(held).tolist():
            variable = self.program.add_variable(0, min(int(held[chosen]), most))
            self.of[shape, chosen] = variable
            variables[variable] = 1
        return variables

    def _spanning(self, shape: int, most: int) -> dict[int, int]:
        held, groups = self.room.question.slots(shape), self.room.groups[shape]
        ids = self.containers(shape)
        variables = {}
        for container in np.unique(ids[held > 0]).tolist():
            inside = np.flatnonzero((ids == container) & (held > 0)).tolist()
            replicas = self.program.add_variable(0, min(int(held[inside].sum()) // groups, most))
            row = {replicas: -groups}
            for chosen in inside:
                self.groups[shape, chosen] = self.program.add_variable(0, min(int(held[chosen]), most * groups))
                row[self.groups[shape, chosen]] = 1
            self.program.add_row("locality", row, lower=0, upper=0)
            variables[replicas] = 1
        return variables

    def containers(self, shape: int) -> IntArray:
        """Container of every bin of a shape's pool that holds its replicas together [bins]."""
        bins = self.room.question.bins[self.room.pool[shape]]
        return bins.containers[Container(int(self.room.question.instance.shapes.container[shape]))]

    def nested(self, pool: int, left: IntArray) -> None:
        """Write the rows of every bin of a pool."""
        terms: dict[tuple[int, int], dict[int, int]] = {}
        inside = ((key, variable, self.room.groups[key[0]]) for key, variable in self.of.items())
        spanning = ((key, variable, 1) for key, variable in self.groups.items())
        for (shape, chosen), variable, times in (*inside, *spanning):
            if self.room.pool[shape] == pool:
                for position in np.flatnonzero(self.room.takes[shape]).tolist():
                    terms.setdefault((chosen, position), {})[variable] = int(self.room.takes[shape][position]) * times
        for (chosen, position), row in terms.items():
            self.program.add_row("occupancy", row, upper=int(left[chosen, position]))

    def carried(self) -> dict[tuple[int, int], dict[int, int]]:
        """What every deployment has in every failure domain, as linear expressions."""
        terms: dict[tuple[int, int], dict[int, int]] = {}
        for (shape, chosen), variable in (*self.of.items(), *self.groups.items()):
            domain = self.room.domain(shape)
            if domain is not None:
                terms.setdefault((self.room.deployment[shape], int(domain[chosen])), {})[variable] = self.room.capacity[shape]
        return terms

    def standing(self) -> dict[tuple[int, int], dict[int, int]]:
        """Replicas of every deployment in every domain that it spreads over, as linear expressions."""
        terms: dict[tuple[int, int], dict[int, int]] = {}
        for (shape, chosen), variable in (*self.of.items(), *self.groups.items()):
            domain, _ = self.room.spread(shape)
            if domain is not None:
                terms.setdefault((self.room.deployment[shape], int(domain[chosen])), {})[variable] = 1
        return terms

    def read(self, values: Sequence[int]) -> Places:
        """Places of a solution; groups of spanning replicas are dealt out container by container, those of one bin together."""
        places = Places({key: values[variable] for key, variable in self.of.items() if values[variable]})
        dealt: dict[tuple[int, int], list[int]] = {}
        for (shape, chosen), variable in self.groups.items():
            dealt.setdefault((shape, int(self.containers(shape)[chosen])), []).extend([chosen] * values[variable])
        for (shape, _), own in sorted(dealt.items()):
            each = self.room.groups[shape]
            for start in range(0, len(own), each):
                places.spanning.append((shape, tuple(sorted(Counter(own[start : start + each]).items()))))
        return places


def refit(room: Room, counts: IntArray, places: Places, pool: int, limits: cpsat.Limits) -> Places | None:
    """Place the replicas of one pool anew, those that span bins excepted; None when that fails or the program is too large."""
    kept = Places(
        {key: count for key, count in places.inside.items() if room.pool[key[0]] != pool},
        places.spanning,
        {shape: count for shape, count in places.missing.items() if room.pool[shape] != pool},
    )
    taken = room.used(kept)
    wanted = counts.copy()
    for shape, _ in places.spanning:
        wanted[shape] -= 1
    program = Program()
    sites = Sites(room, program)
    for shape in np.flatnonzero((room.question.instance.shapes.pool == pool) & (wanted > 0)).tolist():
        program.add_row("count", sites.add(shape, int(wanted[shape])), lower=int(wanted[shape]), upper=int(wanted[shape]))
    if len(program.lower) > PLACES:
        return None
    sites.nested(pool, taken.left[pool])
    caps = room.caps(counts)
    for (deployment, label), row in sites.carried().items():
        room_left = caps[deployment] - int(taken.carried[deployment][label])
        if room_left < 0:
            return None
        program.add_row("resilience", row, upper=room_left)
    for (deployment, label), row in sites.standing().items():
        room_left = room.apart[deployment][1] - int(taken.replicas[deployment][label])
        if room_left < 0:
            return None
        program.add_row("spread", row, upper=room_left)
    hint = {variable: places.inside.get(key, 0) for key, variable in sites.of.items()}
    found = cpsat.minimise(program, {}, limits, hint)
    if found.values is None:
        return None
    placed = sites.read(found.values)
    kept.inside.update(placed.inside)
    return replace(kept, spanning=[*kept.spanning, *placed.spanning])


def choose_and_place(
    room: Room,
    parts: Parts,
    listed: Sequence[Choices],
    least: int,
    most: int | None,
    limits: cpsat.Limits,
    hint: tuple[IntArray, Places] | None,
) -> tuple[Result, IntArray, Places] | None:
    """Pick one choice per deployment and its places at once; None when no plan is found or the program is too large."""
    program = Program()
    sites = Sites(room, program)
    cost: dict[int, int] = {}
    chosen: list[list[int]] = []
    linked: list[dict[int, int]] = []
    for deployment, mine in enumerate(listed):
        own = [program.add_variable(0, 1) for _ in range(len(mine))]
        chosen.append(own)
        program.add_row("one choice", dict.fromkeys(own, 1), lower=1, upper=1)
        cost.update({variable: price for variable, price in zip(own, mine.cost.tolist(), strict=True) if price})
        for position, shape in enumerate(parts.shapes[deployment].tolist()):
            numbers = mine.counts[:, position].tolist()
            if any(numbers):
                row = sites.add(shape, max(numbers))
                row.update({variable: -number for variable, number in zip(own, numbers, strict=True) if number})
                linked.append(row)
        if len(program.lower) > PLACES:
            return None
    for row in linked:
        program.add_row("count", row, lower=0, upper=0)
    for pool, bins in room.question.bins.items():
        sites.nested(pool, bins.slots)
    for (deployment, _), row in sites.carried().items():
        mine = listed[deployment]
        beyond = mine.counts @ room.question.instance.shapes.capacity[parts.shapes[deployment]] - room.question.rest[deployment]
        row.update({variable: -int(cap) for variable, cap in zip(chosen[deployment], beyond.tolist(), strict=True)})
        program.add_row("resilience", row, upper=0)
    for (deployment, _), row in sites.standing().items():
        program.add_row("spread", row, upper=room.apart[deployment][1])
    for line, limit in zip(parts.use, parts.room.tolist(), strict=True):
        row = {}
        for deployment, own in enumerate(chosen):
            use = listed[deployment].counts @ line[parts.shapes[deployment]]
            row.update({variable: int(number) for variable, number in zip(own, use.tolist(), strict=True) if number})
        program.add_row("room", row, upper=limit)
    program.add_row("bound", cost, lower=least, upper=most)
    started = None if hint is None else _start(listed, parts, chosen, sites, *hint)
    found = cpsat.minimise(program, cost, limits, started)
    if found.values is None:
        return None
    counts = np.zeros(len(parts.cost), dtype=np.int64)
    for deployment, own in enumerate(chosen):
        taken = next(number for number, variable in enumerate(own) if found.values[variable])
        counts[parts.shapes[deployment]] = listed[deployment].counts[taken]
    return replace(found, values=tuple(counts.tolist())), counts, sites.read(found.values)


def _start(
    listed: Sequence[Choices], parts: Parts, chosen: list[list[int]], sites: Sites, counts: IntArray, places: Places
) -> dict[int, int]:
    started = {variable: places.inside.get(key, 0) for key, variable in sites.of.items()}
    for deployment, own in enumerate(chosen):
        same = (listed[deployment].counts == counts[parts.shapes[deployment]]).all(axis=1)
        started.update({variable: int(value) for variable, value in zip(own, same.tolist(), strict=True)})
    return started

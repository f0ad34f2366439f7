"""Lists of choices of every deployment, thinned to those that can matter, and the best combination of one of each by CP-SAT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.solve import cpsat
from planner.solve.decomposition.split import Parts
from planner.solve.instance import BoolArray, IntArray
from planner.solve.program import Program
from planner.solve.result import Result


@dataclass(frozen=True)
class Choices:
    """Choices of one deployment as columns of equal length k: counts over its shapes [k, n], cost [k] and use of the joining rows [k, r]."""

    counts: IntArray
    cost: IntArray
    use: IntArray

    def __len__(self) -> int:
        return len(self.cost)

    def take(self, chosen: BoolArray | IntArray) -> Choices:
        """Only the chosen ones, by index or mask."""
        return Choices(self.counts[chosen], self.cost[chosen], self.use[chosen])


def choices(parts: Parts, deployment: int, counts: IntArray) -> Choices:
    """Choices of a deployment from their counts [k, n]."""
    mine = parts.shapes[deployment]
    return Choices(counts, counts @ parts.cost[mine], counts @ parts.use[:, mine].T)


def live_rows(parts: Parts, listed: Sequence[Choices]) -> BoolArray:
    """Joining rows that some combination of the listed choices could break [r]; the others need not be looked at."""
    greatest = parts.room * 0
    for mine in listed:
        greatest = greatest + mine.use.max(axis=0, initial=0)
    live: BoolArray = (greatest > parts.room) | (parts.others_use != 0).any(axis=1)
    return live


def undominated(listed: Choices, live: BoolArray, most: int) -> Choices | None:
    """Leave out every choice that another one replaces at no more cost and no more use of any live row; None when more than `most` stay."""
    figures = np.column_stack((listed.cost, listed.use[:, live]))
    # A choice can only be replaced by one that comes before it in this order; of equal ones the first stays.
    left = np.lexsort((figures.sum(axis=1), listed.cost))
    figures = figures[left]
    kept: list[int] = []
    while len(left):
        if len(kept) == most:
            return None
        kept.append(int(left[0]))
        stays = (figures < figures[0]).any(axis=1)
        left, figures = left[stays], figures[stays]
    return listed.take(np.array(sorted(kept), dtype=np.int64))


def replaced(listed: Choices, live: BoolArray, ranks: IntArray) -> Choices:
    """Leave out every choice that one of a lower rank [k] replaces at no more cost and no more use of any live row."""
    figures = np.column_stack((listed.cost, listed.use[:, live]))
    left = np.argsort(ranks, kind="stable")
    kept: list[int] = []
    while len(left):
        kept.append(int(left[0]))
        stays = (figures[left] < figures[left[0]]).any(axis=1) | (ranks[left] == ranks[left[0]])
        stays[0] = False
        left = left[stays]
    return listed.take(np.array(sorted(kept), dtype=np.int64))


def combine(parts: Parts, listed: Sequence[Choices], live: BoolArray, least: int, most: int | None, limits: cpsat.Limits) -> Result:
    """Pick one choice per deployment under the live rows at least cost, between `least` and `most`; values are the program's counts and others."""
    question = program_of(parts, listed, live, least, most)
    return question.read(parts, listed, cpsat.minimise(question.program, question.cost, limits))


@dataclass(frozen=True)
class Combination:
    """The choice of one listed choice per deployment as a program; `places` are the (deployment, choice) of its last variables."""

    program: Program
    cost: dict[int, int]
    places: list[tuple[int, int]]

    def read(self, parts: Parts, listed: Sequence[Choices], found: Result) -> Result:
        """Give counts of all shapes, then the others, for the values of the program's variables."""
        if found.values is None:
            return found
        counts = np.zeros(len(parts.cost), dtype=np.int64)
        others, picked = found.values[: len(parts.most)], found.values[len(parts.most) :]
        for (deployment, number), value in zip(self.places, picked, strict=True):
            if value:
                counts[parts.shapes[deployment]] = listed[deployment].counts[number]
        return replace(found, values=(*counts.tolist(), *others))


def program_of(parts: Parts, listed: Sequence[Choices], live: BoolArray, least: int, most: int | None) -> Combination:
    """Write the program of `combine`."""
    program = Program()
    cost: dict[int, int] = {}
    rows: dict[int, dict[int, int]] = {row: {} for row in np.flatnonzero(live).tolist()}
    for position, (upper, price) in enumerate(zip(parts.most.tolist(), parts.others_cost.tolist(), strict=True)):
        variable = program.add_variable(0, upper)
        if price:
            cost[variable] = price
        for row in np.flatnonzero(parts.others_use[:, position]).tolist():
            rows[row][variable] = int(parts.others_use[row, position])
    places: list[tuple[int, int]] = []
    for deployment, mine in enumerate(listed):
        one: dict[int, int] = {}
        for number in range(len(mine)):
            variable = program.add_variable(0, 1)
            places.append((deployment, number))
            one[variable] = 1
            cost[variable] = int(mine.cost[number])
            for row, terms in rows.items():
                if mine.use[number, row]:
                    terms[variable] = int(mine.use[number, row])
        program.add_row("one choice", one, lower=1, upper=1)
    for row, terms in rows.items():
        program.add_row("room", terms, upper=int(parts.room[row]))
    program.add_row("bound", cost, lower=least, upper=most)
    return Combination(program, cost, places)

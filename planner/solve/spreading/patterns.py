"""Whether the replicas of a pool can be packed into its scopes apart, scopes being split into fractions only as a whole; where not, a limit that every plan keeps and they break.

A pattern P is what one scope holds at once: groups whose GPUs it has, of replicas no more than each deployment may have in it. With lambda scopes of class c filled by P::

    sum_{c,P} P_i lambda[c,P] >= D_i        every kind of group i,        sum_P lambda[c,P] <= |c|        every class c

Whatever u >= 0, every plan keeps::

    sum_i u_i D_i <= sum_c |c| max_P sum_i u_i P_i

The u are those of the linear program, which generates its patterns, rounded to integers; the maxima are worked out exactly. Kinds that the counts have none of get the greatest u that leaves the
maxima as they are, one after another.

========== ========== =====================================================================
i          -          kind of group: deployment, size in GPUs, groups of a replica
D_i        groups     groups of kind i of all replicas
|c|        scopes     scopes with as many free GPUs as the class says
========== ========== =====================================================================

i groups in one scope belong to at least ceil(i / groups of a replica) replicas. Source: patterns of P. C. Gilmore and R. E. Gomory, "A linear programming approach to the cutting-stock problem" (1961); lifting of
coefficients as in M. W. Padberg, "On the facial structure of set packing polyhedra" (1973).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.solve.spreading.limit import SCALES, SHORT

LARGEST = 16
"""Most GPUs of a scope whose patterns are worked out."""

TURNS = 400
"""Most patterns that are generated for one linear program."""

Values = NDArray[np.float64] | NDArray[np.int64]
Table = NDArray[Any]
"""Greatest value by GPUs and replicas at most [GPUs + 1, replicas + 1]."""


class Kind(NamedTuple):
    """A kind of group: its deployment, its size [GPUs], and how many make up a replica."""

    deployment: int
    size: int
    groups: int


@dataclass
class Packing:
    """Kinds of groups asked of the scopes of one pool: `free` GPUs and `many` scopes of every class; `most` replicas of a deployment in one scope, where it is limited."""

    kinds: tuple[Kind, ...]
    free: tuple[int, ...]
    many: tuple[int, ...]
    most: dict[int, int]
    _own: dict[int, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        """Group the kinds by deployment."""
        self._own = {}
        for number, kind in enumerate(self.kinds):
            self._own.setdefault(kind.deployment, []).append(number)

    @property
    def largest(self) -> int:
        """GPUs of the largest class."""
        return max(self.free)

    def cap(self, deployment: int) -> int:
        """Most replicas of a deployment in one scope; no more than it has GPUs."""
        return min(self.most.get(deployment, self.largest), self.largest)

    def own(self, deployment: int, values: Values) -> Table:
        """Greatest value of the groups of one deployment [GPUs + 1, replicas + 1]."""
        table = np.zeros((self.largest + 1, self.cap(deployment) + 1), dtype=values.dtype)
        for number in self._own[deployment]:
            if values[number] > 0:
                table = self._with(table, number, values)
        return table

    def _with(self, before: Table, number: int, values: Values) -> Table:
        """Greatest value with groups of one kind more [GPUs + 1, replicas + 1]."""
        table = before.copy()
        for copies, replicas in self._copies(number):
            size = copies * self.kinds[number].size
            into = table[size:, replicas:]
            np.maximum(into, before[: self.largest + 1 - size, : table.shape[1] - replicas] + copies * values[number], out=into)
        return table

    def _copies(self, number: int) -> list[tuple[int, int]]:
        """Numbers of groups of a kind that a scope may hold, and how many replicas they belong to at least."""
        kind = self.kinds[number]
        found = [(copies, -(-copies // kind.groups)) for copies in range(1, self.largest // kind.size + 1)]
        return [(copies, replicas) for copies, replicas in found if replicas <= self.cap(kind.deployment)]

    def others(self, values: Values, without: int | None = None) -> NDArray[Any]:
        """Greatest value of all deployments, but one where it is named, by GPUs [GPUs + 1]."""
        best = np.zeros(self.largest + 1, dtype=values.dtype)
        for deployment in self._own:
            if deployment != without:
                best = joined(best, self.own(deployment, values)[:, -1])
        return best

    def worth(self, values: Values) -> list[int]:
        """Greatest value of every class, of integer values."""
        by_gpus = self.others(values)
        return [int(by_gpus[free]) for free in self.free]

    def best(self, values: Values) -> list[tuple[Any, tuple[int, ...]]]:
        """Greatest value and a pattern that has it, of every class."""
        tables = {deployment: self.own(deployment, values) for deployment in self._own}
        sums = [np.zeros(self.largest + 1, dtype=values.dtype)]
        for table in tables.values():
            sums.append(joined(sums[-1], table[:, -1]))
        return [(sums[-1][free], self._pattern(values, tables, sums, free)) for free in self.free]

    def _pattern(self, values: Values, tables: dict[int, Table], sums: list[NDArray[Any]], free: int) -> tuple[int, ...]:
        found = [0] * len(self.kinds)
        for position, (deployment, table) in reversed(list(enumerate(tables.items()))):
            before = sums[position]
            mine = int(np.argmax(before[: free + 1][::-1] + table[: free + 1, -1]))
            self._trace(deployment, values, mine, found)
            free -= mine
        return tuple(found)

    def _trace(self, deployment: int, values: Values, gpus: int, found: list[int]) -> None:
        """Groups of one deployment that have the greatest value in so many GPUs."""
        own = [number for number in self._own[deployment] if values[number] > 0]
        tables = [np.zeros((self.largest + 1, self.cap(deployment) + 1), dtype=values.dtype)]
        for number in own:
            tables.append(self._with(tables[-1], number, values))
        replicas_left = self.cap(deployment)
        for position in range(len(own), 0, -1):
            number, value = own[position - 1], tables[position][gpus, replicas_left]
            if value == tables[position - 1][gpus, replicas_left]:
                continue
            for copies, replicas in self._copies(number):
                size = copies * self.kinds[number].size
                if (
                    size <= gpus
                    and replicas <= replicas_left
                    and value == tables[position - 1][gpus - size, replicas_left - replicas] + copies * values[number]
                ):
                    found[number] = copies
                    gpus, replicas_left = gpus - size, replicas_left - replicas
                    break


def joined(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Greatest sum of the values of two by GPUs, shared between them in every way [GPUs + 1]."""
    found: NDArray[Any] = one + other[0]
    for gpus in range(1, len(other)):
        np.maximum(found[gpus:], one[: len(one) - gpus] + other[gpus], out=found[gpus:])
    return found


def broken(packing: Packing, demand: Sequence[int]) -> tuple[NDArray[np.int64], int] | None:
    """Weights of the kinds and their limit, which groups of every kind in `demand` break; None where they can be packed, or too many patterns would tell."""
    used = [number for number, groups in enumerate(demand) if groups]
    few = Packing(tuple(packing.kinds[number] for number in used), packing.free, packing.many, packing.most)
    found = _multipliers(few, [demand[number] for number in used])
    if found is None:
        return None
    for scale in SCALES:
        values = np.zeros(len(demand), dtype=np.int64)
        values[used] = np.rint(np.maximum(0.0, found) * scale).astype(np.int64)
        limit = sum(many * value for many, value in zip(packing.many, packing.worth(values), strict=True))
        if int(values @ np.array(demand, dtype=np.int64)) > limit:
            _lift(packing, values, set(used))
            return values, limit
    return None


def _multipliers(packing: Packing, demand: Sequence[int]) -> NDArray[np.float64] | None:
    """Multipliers of the demands in the linear program over all patterns; None where it has a solution, or did not end."""
    from ortools.linear_solver import pywraplp

    solver: Any = pywraplp.Solver.CreateSolver("GLOP")
    solver.Objective().SetMinimization()
    asked = [solver.Constraint(float(groups), solver.infinity()) for groups in demand]
    room = [solver.Constraint(-solver.infinity(), float(many)) for many in packing.many]
    for row, kind in zip(asked, packing.kinds, strict=True):
        short = solver.NumVar(0.0, solver.infinity(), "")
        row.SetCoefficient(short, 1.0)
        solver.Objective().SetCoefficient(short, float(kind.size))
    for _ in range(TURNS):
        if solver.Solve() != solver.OPTIMAL or solver.Objective().Value() <= SHORT:
            return None
        values = np.array([max(0.0, row.dual_value()) for row in asked])
        prices = [max(0.0, -row.dual_value()) for row in room]
        added = False
        for row, price, (value, pattern) in zip(room, prices, packing.best(values), strict=True):
            if value > price + SHORT:
                column = solver.NumVar(0.0, solver.infinity(), "")
                row.SetCoefficient(column, 1.0)
                for own, groups in zip(asked, pattern, strict=True):
                    if groups:
                        own.SetCoefficient(column, float(groups))
                added = True
        if not added:
            return values
    return None


def _lift(packing: Packing, values: NDArray[np.int64], fixed: set[int]) -> None:
    """Raise the weights of all kinds but the `fixed` ones, the largest groups first, as far as no class can hold more value for it; in place."""
    for number in sorted(set(range(len(values))) - fixed, key=lambda number: (-packing.kinds[number].size, number)):
        kind = packing.kinds[number]
        # The weight is 0 here, so that the tables are those without it.
        others, own = packing.others(values, kind.deployment), packing.own(kind.deployment, values)
        whole = joined(others, own[:, -1])
        least: int | None = None
        for free in packing.free:
            for copies in range(1, free // kind.size + 1):
                replicas = -(-copies // kind.groups)
                if replicas > packing.cap(kind.deployment):
                    break
                rest = free - copies * kind.size
                beside = joined(others, own[:, packing.cap(kind.deployment) - replicas])[rest]
                room = int(whole[free] - beside) // copies
                least = room if least is None else min(least, room)
        values[number] = least or 0

"""A program taken apart: one covering knapsack per deployment, and the rows in which deployments meet.

Whatever does not fit this picture is relaxed, never tightened: an equation keeps the side that limits replicas, and a row that rewards more
replicas is left out. The value of the parts is therefore a lower bound of the program, and a plan made of them is checked against all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from planner.solve.decomposition.alone import EFFORT, RULES, Alone, alone, covering_of_buckets, stands_alone
from planner.solve.decomposition.knapsack import Covering, Knapsack
from planner.solve.decomposition.shortfall import ShortKnapsack
from planner.solve.instance import IntArray
from planner.solve.model import Model
from planner.solve.program import Row, Terms

OTHERS_LIMIT = 8_000
"""Most variables beside the counts; with more, the parts say little that the program itself does not."""

ENTRIES_LIMIT = 8_000_000
"""Most entries of these variables in the joining rows, zeros among them."""


@dataclass(frozen=True)
class Parts:
    """A program as knapsacks and joining rows.

    `shapes[m]` are the shapes of deployment m, `knapsacks[m]` its covering problem. `others` [e] are the program's variables beside counts that joining rows
    speak of, each in `0..most[e]`. The parts state::

        minimise  cost n + others_cost x     subject to     use n + others_use x <= room,     n of every deployment in its knapsack

    with `cost` [n] and `use` [r, n] non-negative. Where load may go unserved, `unserved` are the variables of that load, which stand behind the shapes as shapes of their
    own. `complete` tells that every row is there whole, so that a replica that no load or minimum needs may always be
    left out. `switches` maps the variables that follow from the counts to the shapes that turn them on.
    """

    shapes: tuple[IntArray, ...]
    knapsacks: tuple[Covering, ...]
    cost: IntArray
    use: IntArray
    room: IntArray
    others: IntArray
    most: IntArray
    others_cost: IntArray
    others_use: IntArray
    switches: dict[int, tuple[int, ...]]
    complete: bool = False
    unserved: tuple[int, ...] = ()

    def values(self, variables: int, counts: Sequence[int], others: Sequence[int]) -> tuple[int, ...]:
        """Values of all of a program's `variables` from the counts of all shapes and the values of the others."""
        found = [0] * variables
        replicas = len(counts) - len(self.unserved)
        found[:replicas] = counts[:replicas]
        for variable, value in zip(self.unserved, counts[replicas:], strict=True):
            found[variable] = value
        for variable, value in zip(self.others.tolist(), others, strict=True):
            found[variable] = value
        for variable, shapes in self.switches.items():
            found[variable] = int(any(counts[shape] for shape in shapes))
        for mine, knapsack in zip(self.shapes, self.knapsacks, strict=True):
            if isinstance(knapsack, Alone):
                own = knapsack.beside_of([counts[shape] for shape in mine.tolist()])
                for beside, value in zip(knapsack.beside, own, strict=True):
                    found[beside] = value
        return tuple(found)


@dataclass
class _Rules:
    """What is asked of one deployment alone."""

    load: int = 0
    minimum: int = 0
    maximum: int | None = None
    one_shape: bool = False


class _Reading:
    """The rows of a program, sorted into those of one deployment and those that join several."""

    def __init__(self, model: Model) -> None:
        self.owner: list[int] = model.instance.shapes.deployment.tolist()
        # What certainly does not go unserved is no variable.
        self.unserved = {variable: d for d, variable in sorted(model.unserved.items()) if model.program.upper[variable]}
        self.nothing = {variable for variable in model.unserved.values() if not model.program.upper[variable]}
        self.rules = [_Rules() for _ in range(model.instance.deployments)]
        self.capacity = [0] * len(self.owner)
        self.switches: dict[int, list[int]] = {}
        self.joining: list[tuple[dict[int, int], int]] = []
        self.complete = True
        self.alone: dict[int, list[Row]] = {d: [] for d in range(model.instance.deployments) if stands_alone(model.instance, d)}
        # Variables beside the counts that follow from those of one deployment.
        self.beside = {variable: self.owner[shape] for (shape, _), variable in model.slices.items()}
        for row in model.program.rows:
            read = self._without_nothing(row)
            if not self._of_one_deployment(read):
                self._joins(read)

    def _without_nothing(self, row: Row) -> Row:
        if self.nothing.isdisjoint(row.variables):
            return row
        left = [(v, c) for v, c in zip(row.variables, row.coefficients, strict=True) if v not in self.nothing]
        return Row(row.rule, tuple(v for v, _ in left), tuple(c for _, c in left), row.lower, row.upper)

    def _of_one_deployment(self, row: Row) -> bool:
        shapes = [variable for variable in row.variables if variable < len(self.owner)]
        owners = {self.owner[shape] for shape in shapes}
        if row.rule in RULES and self._of_one_alone(row, owners):
            return True
        if row.rule == "replicas" and len(shapes) < len(row.variables):
            # count - U switch <= 0, and at most one switch: only one form may run.
            for switch in row.variables[len(shapes) :]:
                self.switches.setdefault(switch, []).extend(shapes)
            for owner in owners:
                self.rules[owner].one_shape = True
            return True
        short = row.rule == "load" and {self.unserved.get(variable) for variable in row.variables[len(shapes) :]} <= owners
        if len(owners) != 1 or (len(shapes) < len(row.variables) and not short):
            return False
        rules = self.rules[next(iter(owners))]
        if row.rule == "replicas" and set(row.coefficients) == {1}:
            rules.minimum = max(rules.minimum, row.lower or 0)
            rules.maximum = row.upper if rules.maximum is None else rules.maximum
            return True
        if row.rule == "load" and not rules.load and row.upper is None and row.lower is not None and min(row.coefficients) >= 0:
            rules.load = row.lower
            for shape, capacity in zip(shapes, row.coefficients, strict=False):
                self.capacity[shape] = capacity
            return True
        return False

    def _of_one_alone(self, row: Row, owners: set[int]) -> bool:
        """File a row of a deployment that stands alone, whose variables beside the counts then are its own."""
        owners = owners or {self.beside[variable] for variable in row.variables if variable in self.beside}
        if len(owners) != 1 or not owners <= self.alone.keys():
            return False
        (owner,) = owners
        self.alone[owner].append(row)
        self.beside.update(dict.fromkeys((variable for variable in row.variables if variable >= len(self.owner)), owner))
        if row.rule == "load":
            self.rules[owner].load = row.lower or 0
            for shape, capacity in zip(row.variables, row.coefficients, strict=True):
                self.capacity[shape] = capacity
        return True

    def _joins(self, row: Row) -> None:
        for sign, side in ((1, row.upper), (-1, row.lower)):
            if side is None:
                continue
            terms = {variable: sign * coefficient for variable, coefficient in zip(row.variables, row.coefficients, strict=True)}
            if all(c >= 0 for variable, c in terms.items() if variable < len(self.owner) or variable in self.unserved):
                self.joining.append((terms, sign * side))
            else:
                self.complete = False


def objective_unit(parts: Parts) -> int:
    """Greatest integer that divides every value of the objective."""
    return gcd(*parts.cost.tolist(), *parts.others_cost.tolist()) or 1


def split(model: Model, objective: Terms, *, roughly: bool = False) -> Parts | None:
    """Take a program apart, or give None where that says nothing; `roughly` leaves deployments that are no knapsacks to their covering row.

    That is so with one deployment, with too many variables beside the counts, or where replicas earn.
    """
    instance, program = model.instance, model.program
    shapes = len(model.count)
    if (
        instance.deployments < 2
        or any(stands_alone(instance, deployment) for deployment in model.unserved)
        or model.share is not None
        or any(program.lower)
        or model.count != tuple(range(shapes))
    ):
        return None
    if any(coefficient < 0 for coefficient in objective.values()):
        return None
    reading = _Reading(model)
    named = {variable for terms, _ in reading.joining for variable in terms} | set(objective)
    short = tuple(reading.unserved)
    others = sorted(variable for variable in named - set(short) - reading.nothing if variable >= shapes)
    if (
        len(others) > OTHERS_LIMIT
        or len(others) * len(reading.joining) > ENTRIES_LIMIT
        or set(others) & (reading.switches.keys() | reading.beside.keys())
    ):
        return None
    # The load that goes unserved stands behind the shapes.
    column = {**{shape: shape for shape in range(shapes)}, **{variable: shapes + position for position, variable in enumerate(short)}}
    last = {owner: column[variable] for variable, owner in reading.unserved.items()}
    own = tuple(
        np.append(instance.of_deployment(deployment), [last[deployment]] if deployment in last else []).astype(np.int64)
        for deployment in range(instance.deployments)
    )
    knapsacks = tuple(
        _alone(model, reading, deployment, mine.tolist(), objective, 0.0 if roughly else EFFORT)
        if deployment in reading.alone
        else _knapsack(model, reading, deployment, mine.tolist(), short[last[deployment] - shapes] if deployment in last else None)
        for deployment, mine in enumerate(own)
    )
    if not any(knapsack.load for knapsack in knapsacks):
        return None
    place = {variable: position for position, variable in enumerate(others)}
    use = np.zeros((len(reading.joining), len(column)), dtype=np.int64)
    others_use = np.zeros((len(reading.joining), len(others)), dtype=np.int64)
    for number, (terms, _) in enumerate(reading.joining):
        for variable, coefficient in terms.items():
            if variable in column:
                use[number, column[variable]] = coefficient
            elif variable in place:
                others_use[number, place[variable]] = coefficient
    return Parts(
        shapes=own,
        knapsacks=knapsacks,
        cost=np.array([objective.get(variable, 0) for variable in column], dtype=np.int64),
        use=use,
        room=np.array([room for _, room in reading.joining], dtype=np.int64),
        others=np.array(others, dtype=np.int64),
        most=np.array([program.upper[variable] for variable in others], dtype=np.int64),
        others_cost=np.array([objective.get(variable, 0) for variable in others], dtype=np.int64),
        others_use=others_use,
        switches={switch: tuple(found) for switch, found in reading.switches.items()},
        complete=reading.complete,
        unserved=short,
    )


def _alone(model: Model, reading: _Reading, deployment: int, mine: list[int], objective: Terms, effort: float) -> Alone:
    beside = sorted(variable for variable, owner in reading.beside.items() if owner == deployment)
    if model.instance.slicing_of(deployment) is not None:
        covering = covering_of_buckets(model.instance, deployment, mine, objective)
    else:
        covering = [reading.capacity[shape] for shape in mine], reading.rules[deployment].load
    return alone(model.program, reading.alone[deployment], mine, covering, beside, effort)


def _knapsack(model: Model, reading: _Reading, deployment: int, mine: list[int], unserved: int | None) -> Covering:
    rules, upper = reading.rules[deployment], model.program.upper
    shapes = mine if unserved is None else mine[:-1]
    families: tuple[tuple[int, ...], ...] = (tuple(range(len(mine))),)
    if rules.one_shape:
        forms = model.instance.shapes.form[shapes].tolist()
        families = tuple(tuple(i for i, form in enumerate(forms) if form == chosen) for chosen in sorted(set(forms)))
    capacities, limits = tuple(reading.capacity[shape] for shape in shapes), tuple(upper[shape] for shape in shapes)
    if unserved is not None:
        return ShortKnapsack((*capacities, 1), (*limits, upper[unserved]), rules.load, families)
    return Knapsack(capacities, limits, rules.load, minimum=rules.minimum, maximum=rules.maximum, families=families)

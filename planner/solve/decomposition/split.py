"""A program taken apart: one covering knapsack per deployment, and the rows in which deployments meet.

Whatever does not fit this picture is relaxed, never tightened: an equation keeps the side that limits replicas, and a row that rewards more
replicas is left out. The value of the parts is therefore a lower bound of the program, and a plan made of them is checked against all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from planner.solve.decomposition.knapsack import Covering, Knapsack
from planner.solve.instance import IntArray
from planner.solve.model import Model
from planner.solve.program import Program, Row, Terms

OTHERS_LIMIT = 2_000
"""Most variables beside the counts; with more, the parts say little that the program itself does not."""


@dataclass(frozen=True)
class Parts:
    """A program as knapsacks and joining rows.

    `shapes[m]` are the shapes of deployment m, `knapsacks[m]` its covering problem. `others` [e] are the program's variables beside counts that joining rows
    speak of, each in `0..most[e]`. The parts state::

        minimise  cost n + others_cost x     subject to     use n + others_use x <= room,     n of every deployment in its knapsack

    with `cost` [n] and `use` [r, n] non-negative. `complete` tells that every row is there whole, so that a replica that no load or minimum needs may always be
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

    def values(self, variables: int, counts: Sequence[int], others: Sequence[int]) -> tuple[int, ...]:
        """Values of all of a program's `variables` from the counts of all shapes and the values of the others."""
        found = [0] * variables
        found[: len(counts)] = counts
        for variable, value in zip(self.others.tolist(), others, strict=True):
            found[variable] = value
        for variable, shapes in self.switches.items():
            found[variable] = int(any(counts[shape] for shape in shapes))
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
        self.rules = [_Rules() for _ in range(model.instance.deployments)]
        self.capacity = [0] * len(self.owner)
        self.switches: dict[int, list[int]] = {}
        self.joining: list[tuple[dict[int, int], int]] = []
        self.complete = True
        for row in model.program.rows:
            if not self._of_one_deployment(row):
                self._joins(row)

    def _of_one_deployment(self, row: Row) -> bool:
        shapes = [variable for variable in row.variables if variable < len(self.owner)]
        owners = {self.owner[shape] for shape in shapes}
        if row.rule == "replicas" and len(shapes) < len(row.variables):
            # count - U switch <= 0, and at most one switch: only one form may run.
            for switch in row.variables[len(shapes) :]:
                self.switches.setdefault(switch, []).extend(shapes)
            for owner in owners:
                self.rules[owner].one_shape = True
            return True
        if len(owners) != 1 or len(shapes) < len(row.variables):
            return False
        rules = self.rules[next(iter(owners))]
        if row.rule == "replicas" and set(row.coefficients) == {1}:
            rules.minimum = max(rules.minimum, row.lower or 0)
            rules.maximum = row.upper if rules.maximum is None else rules.maximum
            return True
        if row.rule == "load" and not rules.load and row.upper is None and row.lower is not None and min(row.coefficients) >= 0:
            rules.load = row.lower
            for shape, capacity in zip(row.variables, row.coefficients, strict=True):
                self.capacity[shape] = capacity
            return True
        return False

    def _joins(self, row: Row) -> None:
        for sign, side in ((1, row.upper), (-1, row.lower)):
            if side is None:
                continue
            terms = {variable: sign * coefficient for variable, coefficient in zip(row.variables, row.coefficients, strict=True)}
            if all(coefficient >= 0 for variable, coefficient in terms.items() if variable < len(self.owner)):
                self.joining.append((terms, sign * side))
            else:
                self.complete = False


def objective_unit(parts: Parts) -> int:
    """Greatest integer that divides every value of the objective."""
    return gcd(*parts.cost.tolist(), *parts.others_cost.tolist()) or 1


def split(model: Model, objective: Terms) -> Parts | None:
    """Take a program apart, or give None where that says nothing.

    That is so with one deployment, with loads that are not rows of the counts alone (those in buckets), with too many variables beside the counts,
    or where replicas earn.
    """
    instance, program = model.instance, model.program
    shapes = len(model.count)
    if (
        instance.deployments < 2
        or model.slices
        or instance.shapes.spare_of is not None
        or model.share is not None
        or any(program.lower)
        or model.count != tuple(range(shapes))
    ):
        return None
    if any(coefficient < 0 for variable, coefficient in objective.items() if variable < shapes):
        return None
    reading = _Reading(model)
    named = {variable for terms, _ in reading.joining for variable in terms} | set(objective)
    others = sorted(variable for variable in named if variable >= shapes)
    if len(others) > OTHERS_LIMIT or set(others) & reading.switches.keys() or not any(rules.load for rules in reading.rules):
        return None
    place = {variable: position for position, variable in enumerate(others)}
    use = np.zeros((len(reading.joining), shapes), dtype=np.int64)
    others_use = np.zeros((len(reading.joining), len(others)), dtype=np.int64)
    for number, (terms, _) in enumerate(reading.joining):
        for variable, coefficient in terms.items():
            if variable < shapes:
                use[number, variable] = coefficient
            else:
                others_use[number, place[variable]] = coefficient
    own = tuple(instance.of_deployment(deployment) for deployment in range(instance.deployments))
    return Parts(
        shapes=own,
        knapsacks=tuple(
            _knapsack(rules, mine.tolist(), reading.capacity, program, instance.shapes.form[mine].tolist())
            for rules, mine in zip(reading.rules, own, strict=True)
        ),
        cost=np.array([objective.get(variable, 0) for variable in model.count], dtype=np.int64),
        use=use,
        room=np.array([room for _, room in reading.joining], dtype=np.int64),
        others=np.array(others, dtype=np.int64),
        most=np.array([program.upper[variable] for variable in others], dtype=np.int64),
        others_cost=np.array([objective.get(variable, 0) for variable in others], dtype=np.int64),
        others_use=others_use,
        switches={switch: tuple(found) for switch, found in reading.switches.items()},
        complete=reading.complete,
    )


def _knapsack(rules: _Rules, mine: list[int], capacity: list[int], program: Program, forms: list[int]) -> Knapsack:
    families: tuple[tuple[int, ...], ...] = (tuple(range(len(mine))),)
    if rules.one_shape:
        families = tuple(tuple(i for i, form in enumerate(forms) if form == chosen) for chosen in sorted(set(forms)))
    return Knapsack(
        capacities=tuple(capacity[shape] for shape in mine),
        limits=tuple(program.upper[shape] for shape in mine),
        load=rules.load,
        minimum=rules.minimum,
        maximum=rules.maximum,
        families=families,
    )

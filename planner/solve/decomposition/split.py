"""Whether a program falls apart into deployments joined by a few rows, and its parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.solve.decomposition.knapsack import Knapsack
from planner.solve.instance import IntArray
from planner.solve.model import Model
from planner.solve.program import Terms


@dataclass(frozen=True)
class Parts:
    """A program as knapsacks and joining rows.

    `shapes[m]` are the shapes of deployment m, `knapsacks[m]` its covering problem. `cost` [n] are the objective's coefficients, `use` [r, n] and `room`
    [r] the joining rows `use n <= room`, both non-negative.
    """

    shapes: tuple[IntArray, ...]
    knapsacks: tuple[Knapsack, ...]
    cost: IntArray
    use: IntArray
    room: IntArray


def split(model: Model, objective: Terms) -> Parts | None:
    """Split a program, or give None where a rule adds variables or rows that neither one deployment nor a joining row can hold."""
    instance, program = model.instance, model.program
    shapes = len(model.count)
    if len(program.lower) != shapes or instance.deployments < 2 or any(coefficient < 0 for coefficient in objective.values()):
        return None
    owner = instance.shapes.deployment.tolist()
    covers: dict[int, dict[int, int]] = {}
    use, room = [], []
    for row in program.rows:
        if any(coefficient < 0 for coefficient in row.coefficients):
            return None
        if row.upper is not None and row.lower is None:
            column = np.zeros(shapes, dtype=np.int64)
            column[list(row.variables)] = row.coefficients
            use.append(column)
            room.append(row.upper)
            continue
        owners = {owner[variable] for variable in row.variables}
        if row.upper is not None or len(owners) != 1 or row.rule != "load" or owners & covers.keys():
            return None
        covers[owners.pop()] = dict(zip(row.variables, row.coefficients, strict=True))
    if len(covers) != instance.deployments:
        return None
    own = tuple(instance.of_deployment(deployment) for deployment in range(instance.deployments))
    return Parts(
        shapes=own,
        knapsacks=tuple(
            Knapsack(
                [covers[deployment].get(shape, 0) for shape in mine.tolist()],
                [program.upper[shape] if covers[deployment].get(shape, 0) else 0 for shape in mine.tolist()],
                int(instance.loads[deployment]),
            )
            for deployment, mine in enumerate(own)
        ),
        cost=np.array([objective.get(variable, 0) for variable in model.count], dtype=np.int64),
        use=np.array(use, dtype=np.int64).reshape(len(use), shapes),
        room=np.array(room, dtype=np.int64),
    )

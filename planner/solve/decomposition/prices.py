"""The linear programs behind the prices of the joining rows: the program's own relaxation, and the master over columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.solve.decomposition.split import Parts
from planner.solve.instance import IntArray

FloatArray = NDArray[np.float64]


class Master:
    """Restricted master: a convex combination of each deployment's columns under the joining rows.

    ::

        minimise    sum_j c_j lambda_j + others_cost x + dear s
        subject to  sum_j a_j lambda_j + others_use x - s <= room,    sum_{j of m} lambda_j = 1,    lambda, x, s >= 0

    Room bought at a price no plan would pay, s, keeps it feasible while columns are few. The solver is ortools' GLOP, which every installation has; it keeps its
    basis from one solve to the next.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._solver, self._rows = _start(parts)
        self._ones = [self._solver.Constraint(1.0, 1.0) for _ in parts.shapes]
        self._short = [self._solver.NumVar(0.0, self._solver.infinity(), "") for _ in self._rows]
        for row, variable in zip(self._rows, self._short, strict=True):
            row.SetCoefficient(variable, -1.0)
        self._dear = 0.0

    def add(self, deployment: int, cost: int, use: IntArray) -> None:
        """Add one column."""
        variable = add_variable(self._solver, self._rows, float(cost), enumerate(use.tolist()))
        self._ones[deployment].SetCoefficient(variable, 1.0)
        if cost > self._dear:
            self._price_room(float(cost))

    def dearer(self, ceiling: int) -> bool:
        """Make room beyond the rows dearer; False when it already costs more than any plan."""
        if self._dear > ceiling:
            return False
        self._price_room(8 * self._dear + 1)
        return True

    def _price_room(self, price: float) -> None:
        self._dear = price
        for variable in self._short:
            self._solver.Objective().SetCoefficient(variable, price)

    def solve(self) -> tuple[FloatArray, float] | None:
        """Prices of the joining rows and the value; None when the solver gives up."""
        if self._solver.Solve() != self._solver.OPTIMAL:
            return None
        return np.array([max(0.0, -row.dual_value()) for row in self._rows]), float(self._solver.Objective().Value())

    def short(self) -> bool:
        """Whether the last solution bought room: the columns known do not fit together."""
        return any(variable.solution_value() > 1e-6 for variable in self._short)


def first_prices(parts: Parts) -> FloatArray | None:
    """Prices of the joining rows in the linear relaxation of the whole program, where every load is covered by fractions of replicas.

    They start the column generation near its end; None when the relaxation has no solution or the solver gives up.
    """
    solver, rows = _start(parts)
    for mine, knapsack in zip(parts.shapes, parts.knapsacks, strict=True):
        cover = solver.Constraint(1.0, solver.infinity())
        scale = float(max(knapsack.load, 1))
        for shape, capacity, limit in zip(mine.tolist(), knapsack.capacities, knapsack.limits, strict=True):
            variable = add_variable(solver, rows, float(parts.cost[shape]), enumerate(parts.use[:, shape].tolist()))
            variable.SetUb(float(limit))
            cover.SetCoefficient(variable, capacity / scale if knapsack.load else 1.0)
        if not knapsack.load:
            cover.SetLb(0.0)
    if solver.Solve() != solver.OPTIMAL:
        return None
    return np.array([max(0.0, -row.dual_value()) for row in rows])


def _start(parts: Parts) -> tuple[Any, list[Any]]:
    """Start a linear program with the joining rows and the variables beside the counts."""
    from ortools.linear_solver import pywraplp

    solver: Any = pywraplp.Solver.CreateSolver("GLOP")
    rows = [solver.Constraint(-solver.infinity(), float(room)) for room in parts.room.tolist()]
    solver.Objective().SetMinimization()
    for position, (most, cost) in enumerate(zip(parts.most.tolist(), parts.others_cost.tolist(), strict=True)):
        variable = add_variable(solver, rows, float(cost), enumerate(parts.others_use[:, position].tolist()))
        variable.SetUb(float(most))
    return solver, rows


def add_variable(solver: Any, rows: list[Any], cost: float, use: Iterable[tuple[int, float]]) -> Any:
    """Add a variable from 0 on to a linear program, with its cost and its use of rows by their number."""
    variable = solver.NumVar(0.0, solver.infinity(), "")
    solver.Objective().SetCoefficient(variable, cost)
    for row, coefficient in use:
        if coefficient:
            rows[row].SetCoefficient(variable, float(coefficient))
    return variable

"""Whether given loads fit into the room at all, told by prices of the rows in which deployments meet, whatever they cost.

At prices pi >= 0 of the rows every plan uses room worth

    sum_m pi a n_m >= sum_m min { pi a n : n covers the load of m },

so that nothing fits where this exceeds pi room. Where it does not, what is left of it bounds what every deployment may waste, and with it its counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner import interrupts
from planner.solve.decomposition.carrying import carried
from planner.solve.decomposition.columns import Bound, Generation
from planner.solve.decomposition.knapsack import Knapsack
from planner.solve.decomposition.prices import FloatArray, add_variable
from planner.solve.decomposition.split import Parts, split
from planner.solve.decomposition.tightening import Ranges, ranges
from planner.solve.instance import IntArray
from planner.solve.model import Model

ROUNDS = 60
"""Most rounds of column generation."""

COARSE = 14
"""Bits to which the least room of one deployment's choices is found."""

ROUGHLY = 0.3
"""Share of what is missing that the prices may be short of where loads do not fit."""

STEADY = 1e-5
"""Share of the room that the prices may be short of the best ones when the generation ends."""


@dataclass(frozen=True)
class Fit:
    """Loads and the room they need: a program taken apart without money, and the best prices of its rows found.

    `over` is the share of the room that is missing at least, at these prices; negative where some is left.
    """

    model: Model
    parts: Parts
    bound: Bound | None
    impossible: bool

    @property
    def over(self) -> float:
        """Share of the priced room that the loads need beyond it."""
        return 1.0 if self.bound is None else self.bound.exact / self.bound.scale

    def ranges(self, part: int = 1) -> Ranges:
        """Counts of every shape in the plans that there may be; without replicas that may be left out where that can be told.

        With a `part` above 1, only in those where no deployment uses up more than that part of the room that may be left over: some plans, not all.
        """
        assert self.bound is not None
        bound = replace(self.bound, exact=-(-self.bound.exact // part))
        return ranges(self.parts, bound, bound.chosen, 0, minimal=self.parts.complete)


def weights(parts: Parts) -> FloatArray:
    """Room of every row as the unit of what is missing there [r], with the most that variables beside the counts may add."""
    beside = np.maximum(-parts.others_use, 0) @ parts.most
    found: FloatArray = np.maximum(parts.room + beside, 1).astype(np.float64)
    return found


class _Master:
    """Least share s of every row's room that must be added to it for a convex combination of each deployment's columns.

    ::

        minimise    s
        subject to  sum_j a_j lambda_j + others_use x - room s <= room,    sum_{j of m} lambda_j = 1,    lambda, x >= 0,    s >= -1
    """

    def __init__(self, parts: Parts, weight: FloatArray, *, cover: bool = False) -> None:
        from ortools.linear_solver import pywraplp

        self.parts, self.weight = parts, weight
        solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        self._solver = solver
        self._rows = [solver.Constraint(-solver.infinity(), room) for room in (parts.room / weight).tolist()]
        self._missing = solver.NumVar(-1.0, solver.infinity(), "")
        solver.Objective().SetMinimization()
        solver.Objective().SetCoefficient(self._missing, 1.0)
        for row in self._rows:
            row.SetCoefficient(self._missing, -1.0)
        for position, most in enumerate(parts.most.tolist()):
            add_variable(solver, self._rows, 0.0, enumerate((parts.others_use[:, position] / weight).tolist())).SetUb(float(most))
        self._ones = [] if cover else [solver.Constraint(1.0, 1.0) for _ in parts.shapes]

    def add(self, deployment: int, cost: int, use: IntArray) -> None:
        """Add one column; what it costs does not matter."""
        del cost
        variable = add_variable(self._solver, self._rows, 0.0, enumerate((use / self.weight).tolist()))
        self._ones[deployment].SetCoefficient(variable, 1.0)

    def cover(self) -> None:
        """Cover every load by fractions of replicas instead of columns."""
        for mine, knapsack in zip(self.parts.shapes, self.parts.knapsacks, strict=True):
            if not knapsack.load:
                continue
            row = self._solver.Constraint(1.0, self._solver.infinity())
            for shape, capacity, limit in zip(mine.tolist(), knapsack.capacities, knapsack.limits, strict=True):
                use = self.parts.use[:, shape] / self.weight
                variable = add_variable(self._solver, self._rows, 0.0, enumerate(use.tolist()))
                variable.SetUb(float(limit))
                row.SetCoefficient(variable, capacity / knapsack.load)

    def solve(self) -> tuple[FloatArray, float] | None:
        """Prices of the rows, worth 1 in all, and the share that is missing; None when the solver gives up."""
        if self._solver.Solve() != self._solver.OPTIMAL:
            return None
        prices = np.array([max(0.0, -row.dual_value()) for row in self._rows]) / self.weight
        return prices, float(self._solver.Objective().Value())


def fit(model: Model, near: Fit | None = None) -> Fit | None:
    """Find the prices at which the loads of a program need most of its room, from those of loads `near` by on; None where the program does not fall apart.

    The generation ends early where the loads do not fit by far.
    """
    parts = split(model, {})
    if parts is None:
        return None
    coarse = tuple(replace(knapsack, coarse=COARSE) for knapsack in parts.knapsacks if isinstance(knapsack, Knapsack))
    if len(coarse) < len(parts.knapsacks):
        return None
    parts = replace(parts, knapsacks=coarse)
    generation, weight = Generation(parts, 1), weights(parts)
    if near is not None and near.bound is not None:
        start = carried(near.parts, near.model.instance.source, near.bound, parts, model.instance.source)
    else:
        relaxed = _Master(parts, weight, cover=True)
        relaxed.cover()
        solved = relaxed.solve()
        start = 1 / (weight * len(weight)) if solved is None else solved[0]
    master, prices = _Master(parts, weight), start
    for _ in range(ROUNDS):
        if interrupts.asked():
            break
        fresh = 0
        # Prices swing; half way back to the best ones is tried before the master's own.
        steadied = [] if generation.best is None else [(generation.best.prices / generation.scale + prices) / 2]
        for tried in [*steadied, prices]:
            fresh = generation.price(tried, master)
            if fresh:
                break
        solved = None if not fresh else master.solve()
        if solved is None or generation.best is None:
            break
        prices, missing = solved
        over = generation.best.exact / generation.scale
        if missing - over <= max(STEADY, ROUGHLY * over):
            break
    if generation.best is None and not generation.impossible:
        return None
    return Fit(model, parts, generation.best, generation.impossible)

"""Column generation: a lower bound from prices on the joining rows, and whole choices of single deployments worth combining."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.solve.decomposition.split import Parts
from planner.solve.instance import IntArray

PRICE_UNITS = 1 << 10
"""Integer units of a row's price in one unit of the objective, so that pricing and bound are exact."""

ROUNDS = 200
"""Most rounds of column generation."""

Column = tuple[int, ...]


@dataclass
class Pool:
    """Columns by deployment: counts over its own shapes -> (cost, use of the joining rows)."""

    parts: Parts
    columns: list[dict[Column, tuple[int, IntArray]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.columns = [{} for _ in self.parts.shapes]

    def add(self, deployment: int, counts: Column) -> bool:
        """Add one choice of a deployment; False when it is known."""
        if counts in self.columns[deployment]:
            return False
        mine = self.parts.shapes[deployment]
        chosen = np.array(counts, dtype=np.int64)
        self.columns[deployment][counts] = (int(self.parts.cost[mine] @ chosen), self.parts.use[:, mine] @ chosen)
        return True


@dataclass(frozen=True)
class Bound:
    """Best proved lower bound, the row prices it comes from [1 / PRICE_UNITS], and each deployment's own least reduced cost there."""

    value: int
    prices: IntArray
    least: tuple[int, ...]


def reduced_costs(parts: Parts, prices: IntArray) -> list[list[int]]:
    """Costs of every deployment's shapes with the rows they use priced [1 / PRICE_UNITS]."""
    costs = parts.cost * PRICE_UNITS + (prices @ parts.use if len(prices) else 0)
    return [costs[mine].tolist() for mine in parts.shapes]


def generate(pool: Pool, round_up: int) -> Bound | None:
    """Alternate between the master's prices and the deployments' best answers until nothing new turns up.

    bound(pi) = sum_m min { (c + pi a) n } - pi S is valid for every pi >= 0, whatever produced it; objective values are multiples of
    `round_up`, so the bound rounds up to one. None when some deployment cannot be covered at all.
    """
    parts = pool.parts
    best: Bound | None = None
    prices = np.zeros(len(parts.room), dtype=np.int64)
    stable: IntArray | None = None
    for _ in range(ROUNDS):
        fresh = 0
        tries = [prices] if stable is None else [(stable + prices) // 2, prices]
        for tried in tries:
            least = []
            for deployment, costs in enumerate(reduced_costs(parts, tried)):
                cover = parts.knapsacks[deployment].cheapest(costs)
                if cover.bound is None:
                    return None
                least.append(cover.bound)
                if cover.counts is not None:
                    fresh += pool.add(deployment, cover.counts)
            value = sum(least) - int(tried @ parts.room)
            rounded = -(-value // (PRICE_UNITS * round_up)) * round_up
            if best is None or value > sum(best.least) - int(best.prices @ parts.room):
                best, stable = Bound(rounded, tried, tuple(least)), tried
            if fresh:
                break
        if not fresh:
            break
        solved = master_prices(pool)
        if solved is None:
            break
        prices, relaxed = solved
        if best is not None and relaxed - best.value <= 1e-6 * abs(relaxed):
            break
    return best


def master_prices(pool: Pool) -> tuple[IntArray, float] | None:
    """Solve the restricted master's linear relaxation: prices of the joining rows, and its value."""
    from ortools.linear_solver import pywraplp

    parts = pool.parts
    solver = pywraplp.Solver.CreateSolver("GLOP")
    infinity = solver.infinity()
    rows = [solver.Constraint(-infinity, float(room)) for room in parts.room.tolist()]
    ones = [solver.Constraint(1.0, 1.0) for _ in parts.shapes]
    objective = solver.Objective()
    dearest = max(cost for columns in pool.columns for cost, _ in columns.values())
    for deployment, columns in enumerate(pool.columns):
        for cost, use in columns.values():
            variable = solver.NumVar(0.0, infinity, "")
            objective.SetCoefficient(variable, float(cost))
            ones[deployment].SetCoefficient(variable, 1.0)
            for row in np.flatnonzero(use).tolist():
                rows[row].SetCoefficient(variable, float(use[row]))
    for row in rows:
        # Room bought at a price no plan would pay keeps the master feasible while columns are few.
        variable = solver.NumVar(0.0, infinity, "")
        objective.SetCoefficient(variable, float(max(dearest, 1)))
        row.SetCoefficient(variable, -1.0)
    objective.SetMinimization()
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return None
    duals = np.array([-row.dual_value() for row in rows])
    return np.rint(np.maximum(duals, 0.0) * PRICE_UNITS).astype(np.int64), float(objective.Value())


def combine(chosen: Sequence[Column], parts: Parts) -> tuple[int, ...]:
    """Counts over all shapes from one column per deployment."""
    counts = np.zeros(len(parts.cost), dtype=np.int64)
    for deployment, column in enumerate(chosen):
        counts[parts.shapes[deployment]] = column
    return tuple(int(count) for count in counts)

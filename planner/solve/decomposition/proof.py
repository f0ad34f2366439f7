"""Plans from combined columns, and the proof by enumeration of every column an optimal plan could use."""

from __future__ import annotations

from math import gcd

import numpy as np

from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.decomposition.columns import PRICE_UNITS, Bound, Column, Pool, combine, generate, reduced_costs
from planner.solve.decomposition.split import Parts
from planner.solve.model import Model
from planner.solve.program import Program, Terms, evaluate
from planner.solve.result import Result

FIRST_SLACK = 2e-4
"""Distance from the bound, as a share of it, within which columns are listed first."""

LISTED = (100, 400, 1500)
"""Most columns of one deployment that are listed, round after round."""


def decompose(model: Model, objective: Terms, parts: Parts, limits: cpsat.Limits) -> Result:
    """Minimise by deployments: bound by column generation, plan by a restricted master, proof by enumeration.

    At the prices of the best bound, every column of a plan cheaper than `upper` has a reduced cost within upper - bound of its deployment's
    own least; when all minimal columns within that distance are listed, CP-SAT over them proves the optimum. `parts` are the model's, as
    `split` gives them.
    """
    pool = Pool(parts)
    unit = gcd(*(int(cost) for cost in parts.cost.tolist())) or 1
    bound = generate(pool, unit)
    if bound is None:
        return Result(Status.INFEASIBLE)
    best = Result(Status.UNKNOWN, bound=bound.value, stopped_by="effort")
    slack = max(1, int(abs(bound.value) * FIRST_SLACK))
    for listed in LISTED:
        columns, complete = _list(pool, bound, slack, listed)
        found = _choose(parts, columns, bound.value, best.objective, limits, model, objective)
        if found.values is not None:
            best = Result(Status.FEASIBLE, found.values, found.objective, bound.value, "effort")
        if best.objective is None:
            # Nothing combines yet: look further from the bound, however many columns that takes.
            slack *= 8
            continue
        gap = best.objective - bound.value
        if gap <= 0 or (complete and found.closed and gap <= slack):
            return Result(Status.OPTIMAL, best.values, best.objective, best.objective)
        if limits.gap > 0.0 and gap <= limits.gap * abs(best.objective):
            return Result(Status.FEASIBLE, best.values, best.objective, bound.value, "gap")
        # A complete list only needs to reach the new gap; a cut one needs to be longer.
        slack = gap if complete or gap < slack else slack
    return best


def _list(pool: Pool, bound: Bound, slack: int, most: int) -> tuple[list[dict[Column, None]], bool]:
    """Columns of every deployment within `slack` of its own least, those of the column generation first."""
    complete = True
    listed: list[dict[Column, None]] = []
    for deployment, costs in enumerate(reduced_costs(pool.parts, bound.prices)):
        reach = slack * PRICE_UNITS
        found, whole = pool.parts.knapsacks[deployment].near(costs, bound.least[deployment] + reach, most)
        complete = complete and whole
        while not whole and reach:
            # A list cut short holds whatever came first; a shorter distance holds the best ones, all of them.
            reach //= 4
            found, whole = pool.parts.knapsacks[deployment].near(costs, bound.least[deployment] + reach, most)
        listed.append(dict.fromkeys([*pool.columns[deployment], *found]))
    return listed, complete


def _choose(
    parts: Parts,
    columns: list[dict[Column, None]],
    bound: int,
    upper: int | None,
    limits: cpsat.Limits,
    model: Model,
    objective: Terms,
) -> Result:
    """Pick one column per deployment under the joining rows, cheaper than `upper`."""
    program = Program()
    cost: dict[int, int] = {}
    rows: list[dict[int, int]] = [{} for _ in parts.room]
    keys: list[tuple[int, Column]] = []
    for deployment, listed in enumerate(columns):
        mine = parts.shapes[deployment]
        matrix = np.array(list(listed), dtype=np.int64).reshape(len(listed), len(mine))
        costs, uses = matrix @ parts.cost[mine], matrix @ parts.use[:, mine].T
        one: dict[int, int] = {}
        for position, column in enumerate(listed):
            variable = program.add_variable(0, 1)
            keys.append((deployment, column))
            one[variable] = 1
            cost[variable] = int(costs[position])
            for row in np.flatnonzero(uses[position]).tolist():
                rows[row][variable] = int(uses[position, row])
        program.add_row("one column", one, lower=1, upper=1)
    for terms, room in zip(rows, parts.room.tolist(), strict=True):
        program.add_row("room", terms, upper=room)
    program.add_row("bound", cost, lower=bound, upper=None if upper is None else upper - 1)
    found = cpsat.minimise(program, cost, limits)
    if found.values is None:
        return found
    picked = dict(key for key, value in zip(keys, found.values, strict=True) if value)
    counts = combine([picked[deployment] for deployment in range(len(parts.shapes))], parts)
    if model.program.violated(counts):
        raise RuntimeError("combined columns break a row")
    return Result(found.status, counts, evaluate(objective, counts), found.bound, found.stopped_by)

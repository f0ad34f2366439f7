"""HiGHS on the same rows: the second opinion, and the second check before the word "impossible"."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

from planner import interrupts
from planner.interrupts import Interrupts
from planner.plan.outcome import Status
from planner.solve.program import Program, Terms, evaluate
from planner.solve.result import Result


def available() -> bool:
    """Whether HiGHS is installed."""
    return find_spec("highspy") is not None


@contextmanager
def _standard_output_elsewhere(*, log: bool) -> Iterator[None]:
    """Keep what HiGHS prints off standard output, which belongs to the answer: on standard error with `log`, nowhere without."""
    sys.stdout.flush()
    kept, other = os.dup(1), os.dup(2) if log else os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(other, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(other)


def minimise(
    program: Program,
    objective: Terms,
    nodes: int = 2_000,
    seconds: float | None = None,
    seed: int = 0,
    *,
    log: bool = False,
    relaxed: bool = False,
) -> Result:
    """Minimise a linear expression by branch and bound in floating point, then check the solution in integers.

    `nodes` bounds the search tree, so that the same problem gives the same answer on any machine. A solution that does not survive
    rounding and the exact check is dropped, and the bound kept. `log` prints the solver's own log on standard error. With `relaxed` variables need not
    be whole: a bound, or that there is not even such a solution, at the price of one linear program.
    """
    import highspy

    with _standard_output_elsewhere(log=False):
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", log)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", seed)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 0.999)
    solver.setOptionValue("mip_max_nodes", nodes)
    if seconds is not None:
        solver.setOptionValue("time_limit", seconds)
    # Rows in 1e-6 of a unit span 13 digits; dividing each by its largest coefficient leaves the tolerance its meaning.
    scales = [float(max((abs(c) for c in row.coefficients), default=1)) for row in program.rows]
    model = highspy.HighsLp()
    model.num_col_ = len(program.lower)
    model.num_row_ = len(program.rows)
    costs = np.zeros(len(program.lower))
    for variable, coefficient in objective.items():
        costs[variable] = coefficient
    model.col_cost_ = costs
    model.col_lower_ = np.array(program.lower, dtype=float)
    model.col_upper_ = np.array(program.upper, dtype=float)
    model.row_lower_ = np.array([-np.inf if r.lower is None else r.lower / s for r, s in zip(program.rows, scales, strict=True)])
    model.row_upper_ = np.array([np.inf if r.upper is None else r.upper / s for r, s in zip(program.rows, scales, strict=True)])
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.cumsum([0, *(len(row.variables) for row in program.rows)]).astype(np.int32)
    model.a_matrix_.index_ = np.array([v for row in program.rows for v in row.variables], dtype=np.int32)
    model.a_matrix_.value_ = np.array([c / s for row, s in zip(program.rows, scales, strict=True) for c in row.coefficients], dtype=float)
    if not relaxed:
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(program.lower)
    solver.passModel(model)
    if Interrupts.active is not None:
        solver.HandleUserInterrupt = True
    with _standard_output_elsewhere(log=log):
        interrupts.run(solver.run, solver.cancelSolve)
    status, told = solver.getModelStatus(), solver.getInfo()
    work = float(max(0, told.simplex_iteration_count))
    if status == highspy.HighsModelStatus.kInfeasible:
        return Result(Status.INFEASIBLE, work=work)
    bound: int | None = None
    found = float(told.mip_dual_bound)
    if relaxed:
        found = float(told.objective_function_value) if status == highspy.HighsModelStatus.kOptimal else math.nan
    if math.isfinite(found):
        # A floating-point bound is trusted to 1e-9 of itself, never beyond.
        bound = math.ceil(found - 1e-6 - 1e-9 * abs(found))
    values = tuple(round(value) for value in solver.getSolution().col_value)
    if told.primal_solution_status == 2 and not program.violated(values):
        value = evaluate(objective, values)
        bound = None if bound is None else min(bound, value)
        if bound == value:
            return Result(Status.OPTIMAL, values, value, value, work=work)
        return Result(Status.FEASIBLE, values, value, bound, "effort", work)
    return Result(Status.UNKNOWN, bound=bound, stopped_by="effort", work=work)

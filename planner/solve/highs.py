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
from planner.solve.program import Program, Terms, evaluate, rounded_up
from planner.solve.result import Result

LEAST = 1e-12
"""Least coefficient beside the largest of its row that the solver takes for more than zero."""

WHOLE_BITS, STEP_BITS = 31, 20
"""Bits of the range of a variable up to which it is told as it is, and those that it is told in where it has more."""

NODES = 2_000
"""Most nodes of one search tree."""

NODE_VARIABLES = 200_000
"""Nodes times variables of a search that is only a second opinion."""

FEWEST_NODES = 40
"""Nodes below which such a search is not begun."""


def available() -> bool:
    """Whether HiGHS is installed."""
    return find_spec("highspy") is not None


def _step(extent: int) -> float:
    """Step in which a variable is told: a power of two that leaves a wide range `STEP_BITS`."""
    bits = extent.bit_length()
    return 1.0 if bits <= WHOLE_BITS else float(1 << (bits - STEP_BITS))


def nodes_for(program: Program) -> int:
    """Nodes of a search as a second opinion, whose nodes take longer the larger the program is; none where it is not installed or too few are left to be worth the first of them."""
    nodes = min(NODES, NODE_VARIABLES // max(1, len(program.lower)))
    return nodes if nodes >= FEWEST_NODES and available() else 0


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
    nodes: int = NODES,
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
    # A variable that counts load in 1e-6 of a unit runs to 1e12 beside ones that count replicas: in steps of its own it keeps coefficients alike.
    steps = [_step(upper - lower) for lower, upper in zip(program.lower, program.upper, strict=True)]
    # Rows in 1e-6 of a unit span 13 digits; dividing each by its largest coefficient leaves the tolerance its meaning.
    scales = [max((abs(c) * steps[v] for v, c in zip(row.variables, row.coefficients, strict=True)), default=1.0) for row in program.rows]
    entries = [
        c * steps[v] / s for row, s in zip(program.rows, scales, strict=True) for v, c in zip(row.variables, row.coefficients, strict=True)
    ]
    model = highspy.HighsLp()
    model.num_col_ = len(program.lower)
    model.num_row_ = len(program.rows)
    costs = np.zeros(len(program.lower))
    for variable, coefficient in objective.items():
        costs[variable] = coefficient * steps[variable]
    model.col_cost_ = costs
    model.col_lower_ = np.array(program.lower, dtype=float) / steps
    model.col_upper_ = np.array(program.upper, dtype=float) / steps
    model.row_lower_ = np.array([-np.inf if r.lower is None else r.lower / s for r, s in zip(program.rows, scales, strict=True)])
    model.row_upper_ = np.array([np.inf if r.upper is None else r.upper / s for r, s in zip(program.rows, scales, strict=True)])
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.cumsum([0, *(len(row.variables) for row in program.rows)]).astype(np.int32)
    model.a_matrix_.index_ = np.array([v for row in program.rows for v in row.variables], dtype=np.int32)
    model.a_matrix_.value_ = np.array(entries, dtype=float)
    if not relaxed:
        # One that runs in steps is left continuous: a bound, or that there is no solution, holds all the more.
        whole, any_value = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        model.integrality_ = [whole if step == 1.0 else any_value for step in steps]
    # What is smaller the solver reads as zero, which may rule solutions out: it may then find some, and prove nothing.
    sound = min(map(abs, entries), default=1.0) > LEAST
    solver.setOptionValue("small_matrix_value", LEAST)
    solver.passModel(model)
    if Interrupts.active is not None:
        solver.HandleUserInterrupt = True
    with _standard_output_elsewhere(log=log):
        interrupts.run(solver.run, solver.cancelSolve)
    status, told = solver.getModelStatus(), solver.getInfo()
    work = float(max(0, told.simplex_iteration_count))
    if status == highspy.HighsModelStatus.kInfeasible and sound:
        return Result(Status.INFEASIBLE, work=work)
    bound: int | None = None
    found = float(told.mip_dual_bound)
    if relaxed:
        found = float(told.objective_function_value) if status == highspy.HighsModelStatus.kOptimal else math.nan
    if math.isfinite(found) and sound:
        # A floating-point bound is trusted to 1e-9 of itself, never beyond.
        bound = rounded_up(math.ceil(found - 1e-6 - 1e-9 * abs(found)), objective)
    values = tuple(round(value * step) for value, step in zip(solver.getSolution().col_value, steps, strict=False))
    if told.primal_solution_status == 2 and not program.violated(values):
        value = evaluate(objective, values)
        bound = None if bound is None else min(bound, value)
        if bound == value:
            return Result(Status.OPTIMAL, values, value, value, work=work)
        return Result(Status.FEASIBLE, values, value, bound, "effort", work)
    return Result(Status.UNKNOWN, bound=bound, stopped_by="effort", work=work)

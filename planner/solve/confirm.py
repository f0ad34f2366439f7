"""A second, independent check before anything is called impossible."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.solve import cpsat, highs
from planner.solve.program import Program
from planner.solve.result import Result


def elastic(program: Program, limits: cpsat.Limits) -> Result:
    """Least total amount by which rows must give way: zero exactly when the program has a solution.

    Every row `lower <= a x <= upper` becomes `lower <= a x + s - t <= upper` with s, t >= 0, and sum s + t is minimised. Bounds of
    variables stay hard, so the relaxed program always has a solution and its presolve works on other rows than the first one's did.
    """
    relaxed = Program(list(program.lower), list(program.upper))
    slacks: dict[int, int] = {}
    for row in program.rows:
        terms = dict(zip(row.variables, row.coefficients, strict=True))
        ends = [(c * program.lower[v], c * program.upper[v]) for v, c in terms.items()]
        if row.lower is not None:
            short = relaxed.add_variable(0, max(0, row.lower - sum(map(min, ends))))
            terms[short] = 1
            slacks[short] = 1
        if row.upper is not None:
            over = relaxed.add_variable(0, max(0, sum(map(max, ends)) - row.upper))
            terms[over] = -1
            slacks[over] = 1
        relaxed.add_row(row.rule, terms, row.lower, row.upper)
    return cpsat.minimise(relaxed, slacks, limits)


def impossible(program: Program, limits: cpsat.Limits, *, said_by_highs: bool = False) -> Result:
    """Confirm that a program has no solution: by HiGHS where installed and not the one that said so, else by the elastic program.

    The result is INFEASIBLE when the second check agrees, carries the solution when it finds one, and is UNKNOWN when it cannot tell.
    """
    if highs.available() and not said_by_highs:
        second = highs.minimise(program, {}, seconds=limits.seconds, seed=limits.seed)
        if second.status is Status.INFEASIBLE or second.values is not None:
            return second
    relaxed = elastic(program, limits)
    if relaxed.bound is not None and relaxed.bound > 0:
        return Result(Status.INFEASIBLE)
    if relaxed.values is not None and relaxed.objective == 0:
        values = relaxed.values[: len(program.lower)]
        if not program.violated(values):
            return Result(Status.FEASIBLE, values, 0, None, relaxed.stopped_by)
    return Result(Status.UNKNOWN, stopped_by=relaxed.stopped_by)

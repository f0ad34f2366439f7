"""What one run of a solver tells, whichever solver it was."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from planner.plan.outcome import Status


@dataclass(frozen=True, slots=True)
class Result:
    """Status, solution, objective and bound of one minimisation, in exact integers.

    `values` and `objective` are None without a solution, `bound` is None where nothing is proved. `status` is OPTIMAL only when the bound
    meets the objective. `stopped_by` is effort, time, gap or interrupt when the search ended before its proof. `work` is what the solver counted
    of its own: deterministic time or simplex iterations.
    """

    status: Status
    values: tuple[int, ...] | None = None
    objective: int | None = None
    bound: int | None = None
    stopped_by: str | None = None
    work: float = field(default=0.0, compare=False)

    @property
    def closed(self) -> bool:
        """Whether nothing is left to prove."""
        return self.status in {Status.OPTIMAL, Status.INFEASIBLE}


NOTHING = Result(Status.UNKNOWN)
"""What a method tells that has nothing to say about a program."""


NEAR = 2e-4
"""Relative gap below which little is left to prove."""


def near(result: Result, share: float = NEAR) -> bool:
    """Whether so little is left to prove, as a `share` of the objective, that the effort is better spent on the ties."""
    if result.objective is None or result.bound is None:
        return False
    return result.objective - result.bound <= share * abs(result.objective)


def better(first: Result, second: Result) -> Result:
    """Join two runs on the same rows: the better solution (the first on ties) with the better bound.

    Solutions are checked in integers, bounds of a solver in doubles are not: one above a solution that is known is worth nothing.
    """
    if Status.INFEASIBLE in {first.status, second.status}:
        return first if first.status is Status.INFEASIBLE else second
    best = first
    if second.objective is not None and (first.objective is None or second.objective < first.objective):
        best = second
    bounds = [result.bound for result in (first, second) if result.bound is not None]
    if best.objective is None:
        return replace(first, bound=max(bounds, default=None))
    bound = max((bound for bound in bounds if bound <= best.objective), default=None)
    if bound == best.objective:
        return replace(best, status=Status.OPTIMAL, bound=best.objective, stopped_by=None)
    return replace(best, status=Status.FEASIBLE, bound=bound, stopped_by=best.stopped_by or first.stopped_by or second.stopped_by)

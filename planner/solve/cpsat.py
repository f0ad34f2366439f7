"""CP-SAT on a `Program`: one worker, full linearization, deterministic limits.

The model goes in as protocol-buffer text through the solver's own extension module, which spares importing the modelling layer on top of
it (and pandas with it). Releases without that module go through the modelling layer; the rows, their order and the answer are the same.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from planner import interrupts
from planner.interrupts import Interrupts
from planner.plan.outcome import Status
from planner.solve.program import Program, Terms, evaluate, rounded_up
from planner.solve.result import Result

NO_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """When one run ends: `effort` [deterministic units], `seconds` of wall time (None: no limit), relative `gap`; its `seed`; who hears its `log`."""

    effort: float
    seconds: float | None = None
    gap: float = 0.0
    seed: int = 0
    log: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    """What either way of calling the solver gives back."""

    status: str
    values: tuple[int, ...]
    bound: float
    seconds: float
    effort: float


Report = Callable[[int | None, float | None], None]
"""Called with a new incumbent and a new bound (None where unchanged)."""


def minimise(
    program: Program, objective: Terms, limits: Limits, hint: Mapping[int, int] | None = None, report: Report | None = None
) -> Result:
    """Minimise a linear expression over a program (an empty one: find any solution).

    Raises
    ------
    RuntimeError
        If the solver refuses the model or returns a solution that breaks a row; both are faults of the formulation.
    """
    with _own_interrupts():
        answer = call_extension(program, objective, limits, hint, report)
        if answer is None:
            answer = call_modelling_layer(program, objective, limits, hint, report)
    if answer.status == "INFEASIBLE":
        return Result(Status.INFEASIBLE, work=answer.effort)
    if answer.status == "UNKNOWN":
        return Result(Status.UNKNOWN, stopped_by=_stopped_by(answer, limits), work=answer.effort)
    if answer.status not in {"OPTIMAL", "FEASIBLE"}:
        raise RuntimeError("the solver refused the model: coefficients too large or a malformed row")
    broken = program.violated(answer.values)
    if broken:
        raise RuntimeError(f"the solver returned a solution that breaks {', '.join(broken)}")
    value = evaluate(objective, answer.values)
    if not objective or (answer.status == "OPTIMAL" and limits.gap == 0.0):
        return Result(Status.OPTIMAL, answer.values, value, value, work=answer.effort)
    # Bounds of integers round up; the slack forgives the last bits of a double below 2^53.
    bound = min(value, rounded_up(math.ceil(answer.bound - 1e-6), objective)) if math.isfinite(answer.bound) else None
    if bound == value:
        return Result(Status.OPTIMAL, answer.values, value, value, work=answer.effort)
    return Result(Status.FEASIBLE, answer.values, value, bound, _stopped_by(answer, limits), answer.effort)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Put the handler of Ctrl-C back: the solver catches it while it runs and leaves the system's behind, which ends the process."""
    if Interrupts.active is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


def _stopped_by(answer: _Answer, limits: Limits) -> str:
    if answer.status == "OPTIMAL":
        return "gap"
    if answer.effort >= 0.999 * limits.effort:
        return "effort"
    if limits.seconds is not None and answer.seconds >= 0.98 * limits.seconds:
        return "time"
    # The solver catches Ctrl-C itself and returns what it has.
    return "interrupt"


def _parameters(limits: Limits) -> dict[str, object]:
    chosen: dict[str, object] = {
        "num_workers": 1,
        "linearization_level": 2,
        "max_deterministic_time": max(limits.effort, 1e-3),
        "random_seed": limits.seed,
    }
    if limits.seconds is not None:
        chosen["max_time_in_seconds"] = max(limits.seconds, 1e-3)
    if Interrupts.active is not None:
        chosen["catch_sigint_signal"] = False
    if limits.log is not None:
        chosen["log_search_progress"] = True
        chosen["log_to_stdout"] = False
    if limits.gap > 0.0:
        chosen["relative_gap_limit"] = limits.gap
    return chosen


def model_text(program: Program, objective: Terms, hint: Mapping[int, int] | None) -> str:
    """Write a program as CpModelProto text; `<= upper` alone becomes a domain open to the left."""
    lines = [f"variables{{domain:[{lower},{upper}]}}" for lower, upper in zip(program.lower, program.upper, strict=True)]
    for row in program.rows:
        lower = -NO_LIMIT - 1 if row.lower is None else row.lower
        upper = NO_LIMIT if row.upper is None else row.upper
        lines.append(
            f"constraints{{linear{{vars:[{','.join(map(str, row.variables))}] coeffs:[{','.join(map(str, row.coefficients))}]"
            f" domain:[{lower},{upper}]}}}}"
        )
    if objective:
        lines.append(f"objective{{vars:[{','.join(map(str, objective))}] coeffs:[{','.join(map(str, objective.values()))}]}}")
    if hint:
        lines.append(f"solution_hint{{vars:[{','.join(map(str, hint))}] values:[{','.join(map(str, hint.values()))}]}}")
    return "\n".join(lines)


def call_extension(
    program: Program, objective: Terms, limits: Limits, hint: Mapping[int, int] | None = None, report: Report | None = None
) -> _Answer | None:
    """Run a program through the solver's extension module; None where the release offers no such interface."""
    try:
        from ortools.sat.python import cp_model_helper

        extension: Any = cp_model_helper
        text_model, wrapper, settings = extension.CpModelProto(), extension.SolveWrapper(), extension.SatParameters()
    except (ImportError, AttributeError):
        return None
    if not text_model.parse_text_format(model_text(program, objective, hint)):
        raise RuntimeError("the solver cannot read the model's text")
    for name, value in _parameters(limits).items():
        setattr(settings, name, value)
    wrapper.set_parameters(settings)
    watcher: Any = None
    if report is not None and objective:
        told = report

        class Watcher(extension.SolutionCallback):  # type: ignore[misc]
            def OnSolutionCallback(self) -> None:  # noqa: N802
                told(round(self.ObjectiveValue()), self.BestObjectiveBound())

        # The wrapper keeps no reference of its own: the callback must outlive the run.
        watcher = Watcher()
        wrapper.add_solution_callback(watcher)
        wrapper.add_best_bound_callback(lambda bound: told(None, bound))
    if limits.log is not None:
        wrapper.add_log_callback(limits.log)
    response = interrupts.run(lambda: wrapper.solve(text_model), wrapper.stop_search)
    if watcher is not None:
        wrapper.clear_solution_callback(watcher)
    return _Answer(
        str(response.status).rpartition(".")[2],
        tuple(response.solution),
        float(response.best_objective_bound),
        float(response.wall_time),
        float(response.deterministic_time),
    )


def call_modelling_layer(
    program: Program, objective: Terms, limits: Limits, hint: Mapping[int, int] | None = None, report: Report | None = None
) -> _Answer:
    """Run the same model through `ortools.sat.python.cp_model`, for releases without the extension's own interface."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    variables = [model.new_int_var(lower, upper, "") for lower, upper in zip(program.lower, program.upper, strict=True)]
    for row in program.rows:
        terms = cp_model.LinearExpr.weighted_sum([variables[v] for v in row.variables], list(row.coefficients))
        least = cp_model.INT_MIN if row.lower is None else row.lower
        most = cp_model.INT_MAX if row.upper is None else row.upper
        model.add_linear_constraint(terms, least, most)
    if objective:
        model.minimize(cp_model.LinearExpr.weighted_sum([variables[v] for v in objective], list(objective.values())))
    for hinted, value in (hint or {}).items():
        model.add_hint(variables[hinted], value)
    solver = cp_model.CpSolver()
    for name, setting in _parameters(limits).items():
        setattr(solver.parameters, name, setting)
    watcher: Any = None
    if report is not None and objective:
        told = report

        class Watcher(cp_model.CpSolverSolutionCallback):
            def on_solution_callback(self) -> None:
                told(round(self.objective_value), self.best_objective_bound)

        watcher = Watcher()
        solver.best_bound_callback = lambda bound: told(None, bound)
    if limits.log is not None:
        solver.log_callback = limits.log
    status = solver.status_name(interrupts.run(lambda: solver.solve(model, watcher), solver.stop_search))
    found = status in {"OPTIMAL", "FEASIBLE"}
    values = tuple(solver.value(variable) for variable in variables) if found else ()
    bound = float(solver.best_objective_bound) if found and objective else 0.0
    return _Answer(status, values, bound, float(solver.wall_time), float(solver.deterministic_time))

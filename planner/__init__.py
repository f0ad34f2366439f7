"""Deployment planner for LLM inference: which parallelism, on which GPUs, at what cost, and how sure is that.

`load`, `solve`, `audit` and `what_if` are the interface for programs; nothing else is imported before one of them is called. `planner.solve` and
`planner.audit` are rooms of the package as well: their modules can be called in the functions' place.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from planner.diagnostics import Diagnostic, PlannerError
    from planner.plan.diff import PlanDifference
    from planner.plan.document import PlanDocument
    from planner.problem.load import LoadedProblem
    from planner.results import AuditReport, Solution, WhatIf

__version__ = "0.1.0"
__all__ = [
    "AuditReport",
    "Diagnostic",
    "LoadedProblem",
    "PlanDifference",
    "PlanDocument",
    "PlannerError",
    "Solution",
    "WhatIf",
    "__version__",
    "audit",
    "load",
    "solve",
    "what_if",
]

# Types of the interface by the module that has them, which is imported when one is asked for.
_HOMES = {
    "AuditReport": "planner.results",
    "Diagnostic": "planner.diagnostics",
    "LoadedProblem": "planner.problem.load",
    "PlanDifference": "planner.plan.diff",
    "PlanDocument": "planner.plan.document",
    "PlannerError": "planner.diagnostics",
    "Solution": "planner.results",
    "WhatIf": "planner.results",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load(path: str | PathLike[str], overrides: Sequence[str] = ()) -> LoadedProblem:
    """Load a problem file with its topology and models.

    Parameters
    ----------
    path
        YAML or JSON file, or `-` for standard input.
    overrides
        Changes of single values, each PATH=VALUE (`deployments.chat.workload.concurrency=64`).

    Raises
    ------
    PlannerError
        With every fault of all files, each with its place.
    """
    from planner.problem.load import load_problem

    return load_problem(str(path), tuple(overrides))


def solve(
    problem: str | PathLike[str] | LoadedProblem,
    overrides: Sequence[str] = (),
    *,
    force: str | None = None,
    time_limit: float | None = None,
    gap: float = 0.0,
    profile: str | None = None,
    pareto: Literal["tpot", "ttft"] | None = None,
) -> Solution:
    """Find the best plan of a problem, audited.

    Parameters
    ----------
    problem
        A problem file, or a problem that is loaded (which takes no overrides and no profile any more).
    overrides
        Changes of single values, each PATH=VALUE.
    force
        Allow only this shape (`tp8`, `tp4-pp2`).
    time_limit
        Stop after this long [s].
    gap
        Stop when the plan is proved to be within this share of the best.
    profile
        Physics in place of the problem's.
    pareto
        Also find the cheapest plan at every latency worth asking for, by this time: `Solution.pareto` and `Solution.pareto_plans`.

    Raises
    ------
    PlannerError
        When the problem cannot be used, or the audit refuses the planner's own plan.
    """
    from planner.answer.answering import Options, answer, answer_loaded
    from planner.diagnostics import Diagnostic, PlannerError
    from planner.problem.load import LoadedProblem
    from planner.results import Solution

    options = Options(tuple(overrides), force, time_limit, gap, profile, pareto=pareto)
    if not isinstance(problem, LoadedProblem):
        found = answer(str(problem), options)
    elif overrides or profile is not None:
        hint = "give them to load(), or name the file"
        raise PlannerError([Diagnostic("OVERRIDE_NOT_UNDERSTOOD", "a loaded problem takes no overrides and no profile", hint)])
    else:
        found = answer_loaded(problem, options)
    if found.audit_errors:
        raise PlannerError(found.audit_errors)
    return Solution(found)


def audit(problem: str | PathLike[str] | LoadedProblem, plan: str | PathLike[str] | PlanDocument | Solution) -> AuditReport:
    """Check a plan against a problem by arithmetic of its own; nothing of the solver is used.

    Parameters
    ----------
    problem
        A problem file, or a problem that is loaded.
    plan
        A plan file (`planner solve -o plan.json`), a plan document, or a solution.

    Raises
    ------
    PlannerError
        When a file cannot be read. What is wrong with the plan is in the report instead.
    """
    from planner.audit.audit import audit as check
    from planner.plan.document import PlanDocument
    from planner.plan.reading import read_plan
    from planner.problem.load import LoadedProblem
    from planner.results import AuditReport, Solution

    loaded = problem if isinstance(problem, LoadedProblem) else load(problem)
    if isinstance(plan, Solution):
        plan = plan.plan
    document = plan if isinstance(plan, PlanDocument) else read_plan(str(plan))
    return AuditReport(check(loaded.problem, loaded.fabric, loaded.architectures, document, loaded.current))


def what_if(
    problem: str | PathLike[str],
    scenarios: str | PathLike[str] | Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]] = (),
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    max_load: Sequence[str] = (),
    smallest_fleet: Sequence[str] = (),
    growth: str | None = None,
    worst_failure: str | None = None,
    buy: Sequence[str] = (),
    node_value: bool = False,
    **options: Any,
) -> WhatIf:
    """Solve scenarios of a problem and answer fleet questions, each compared with the plan as it is.

    Parameters
    ----------
    problem
        A problem file.
    scenarios
        A scenario file; or changes by the scenario's name (`{"twice": {"load": "x2"}}`); or a list of changes.
    grid
        Values to try by path; every combination is a scenario.
    max_load, smallest_fleet, growth, worst_failure, buy, node_value
        Questions, as the options of `planner whatif`.
    options
        `overrides`, `engine`, `address`, `jobs`, `store`, `time_limit` [s], `gap` and `shown` (progress on stderr), as the options of
        `planner whatif`.

    Raises
    ------
    PlannerError
        With everything that is wrong, before anything is solved; or when a store is full (what was solved is in it).
    KeyboardInterrupt
        When interrupted (what was solved is in the store).
    """
    from planner.results import WhatIf
    from planner.whatif.programs import response_of

    asked = {"max_load": max_load, "smallest_fleet": smallest_fleet, "growth": growth, "worst_failure": worst_failure, "buy": buy}
    return WhatIf(response_of(str(problem), scenarios, grid or {}, asked | {"node_value": node_value}, options))


class _Room(ModuleType):
    """A room of the package whose module can be called like the function of the same name."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return _FUNCTIONS[self.__name__.rpartition(".")[2]](*arguments, **options)


class _Package(ModuleType):
    """The package itself: when `planner.solve` or `planner.audit` is imported, its module takes the function's name, and can be called all the same."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FUNCTIONS and isinstance(value, ModuleType):
            value.__class__ = _Room
            vars(value).setdefault("__wrapped__", _FUNCTIONS[name])
        super().__setattr__(name, value)


_FUNCTIONS: dict[str, Callable[..., Any]] = {"solve": solve, "audit": audit}
sys.modules[__name__].__class__ = _Package

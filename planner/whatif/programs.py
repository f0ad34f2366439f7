"""What-ifs asked from Python: mappings and sequences in place of a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.whatif.scenario_file import QuestionPart, read_scenario_file
from planner.whatif.scenarios import Scenario, grid_scenarios, mapped_scenarios, text_of
from planner.whatif.solving import Limits
from planner.whatif.what_if import Request, Response, respond

OPTIONS = {field.name for field in fields(Request)} - {"problem", "scenarios", "questions", "limits"} | {"time_limit", "gap"}


def response_of(
    problem: str,
    scenarios: str | PathLike[str] | Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]],
    grid: Mapping[str, Sequence[Any]],
    asked: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Response:
    """Response to scenarios and questions given as Python values; see `planner.what_if`.

    Raises
    ------
    PlannerError
        As `respond` does; OPTION_UNKNOWN for an option there is not; and when the store could not be written to the end.
    KeyboardInterrupt
        When it was interrupted.
    """
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        message = f"what_if has no option {', '.join(unknown)}"
        raise PlannerError([Diagnostic("OPTION_UNKNOWN", message, f"there are {', '.join(sorted(OPTIONS))}")])
    found: list[Scenario] = []
    questions = QuestionPart()
    if isinstance(scenarios, str | PathLike):
        found, questions = read_scenario_file(str(scenarios))
    elif scenarios:
        found = mapped_scenarios(scenarios)
    if grid:
        found += grid_scenarios([(path, [text_of(value) for value in values]) for path, values in grid.items()], place=Place("grid"))
    given = {key: tuple([value] if isinstance(value, str) else value) if key in _MANY else value for key, value in asked.items() if value}
    rest = {key: value for key, value in options.items() if key not in {"time_limit", "gap"}}
    if rest.get("store") is not None:
        rest["store"] = Path(rest["store"])
    limits = Limits(options.get("time_limit"), options.get("gap", 0.0))
    response = respond(Request(problem, found, questions.model_copy(update=given), limits=limits, **rest))
    if response.interrupted:
        raise KeyboardInterrupt
    if response.fault is not None:
        raise PlannerError([response.fault])
    return response


_MANY = frozenset({"max_load", "smallest_fleet", "buy"})

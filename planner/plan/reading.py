"""A plan file -> plan document; whatever is no plan is refused with its place."""

from __future__ import annotations

import json

from pydantic import ValidationError

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.plan.document import PlanDocument
from planner.problem.source_text import display_name, read_source

MOST_FAULTS = 20


def read_plan(path: str) -> PlanDocument:
    """Plan of the file at `path` (`-` = standard input), as `planner solve --json` and `-o` write it.

    Raises
    ------
    PlannerError
        PLAN_NOT_READABLE with every key that keeps the file from being a plan, or what keeps it from being read at all.
    """
    return plan_of(read_source(path), display_name(path))


def plan_of(text: str, name: str) -> PlanDocument:
    """Plan written in `text`; `name` is shown as the file.

    Raises
    ------
    PlannerError
        PLAN_NOT_READABLE.
    """
    hint = "write a plan with `planner solve PROBLEM -o plan.json`"
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        place = Place(name, error.lineno, error.colno)
        raise PlannerError([Diagnostic("PLAN_NOT_READABLE", f"this is not JSON: {error.msg.lower()}", hint, place=place)]) from None
    except (RecursionError, ValueError):
        raise PlannerError([Diagnostic("PLAN_NOT_READABLE", "this is nested too deeply", hint, place=Place(name))]) from None
    try:
        return PlanDocument.model_validate(data)
    except ValidationError as error:
        raise PlannerError(
            Diagnostic("PLAN_NOT_READABLE", fault["msg"].lower(), hint, place=Place(name, path=".".join(map(str, fault["loc"]))))
            for fault in error.errors(include_url=False)[:MOST_FAULTS]
        ) from None

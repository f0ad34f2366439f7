"""`planner report`: a plan as one HTML file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from planner.cli.console import Common, print_diagnostics
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, PlannerError

NO_COMMON = Common()


def report(
    plan: str,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    problem: str | None = None,
    override: Annotated[tuple[str, ...], Parameter(name="--set", negative="")] = (),
    common: Common = NO_COMMON,
) -> int:
    """Write a plan, or the answer of a what-if, as one HTML file that opens without a network.

    Parameters
    ----------
    plan
        Plan file (`planner solve PROBLEM -o plan.json`) or what `planner whatif --json` printed, or `-` for standard input.
    output
        HTML file to write; absent, the page goes to standard output.
    problem
        Problem file of the plan: the plan is then audited against it, and a plan older than it is told.
    override
        Change one value of the problem or its topology, as the plan was solved with.
    common
        Options of every command.
    """
    from planner.plan.ageing import age_of
    from planner.plan.reading import plan_of
    from planner.problem.source_text import display_name, read_source
    from planner.report.page import plan_page

    text, name = read_source(plan), display_name(plan)
    what_if = _what_if(text)
    if what_if is not None:
        from planner.report.page.what_if import what_if_page

        _put(output, what_if_page(what_if))
        return ExitCode.ANSWERED
    document = plan_of(text, name)
    warnings = age_of(document, None, name)
    if problem is not None:
        from planner.audit.audit import audit
        from planner.problem.load import load_problem

        loaded = load_problem(problem, override)
        warnings = age_of(document, loaded.sha256, name)
        found = audit(loaded.problem, loaded.fabric, loaded.architectures, document, loaded.current)
        if found:
            raise PlannerError(found)
    page = plan_page(document, audited=problem is not None, warnings=tuple(f"{item.message}; {item.hint}" for item in warnings))
    _put(output, page)
    print_diagnostics(warnings, common)
    return ExitCode.ANSWERED


def _what_if(text: str) -> dict[str, Any] | None:
    """What-if document as data where the text is one; a plan, or what is neither, is left to the reader of plans."""
    import json

    from pydantic import ValidationError

    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or "scenarios" not in data:
        return None
    from planner.whatif.results import WhatIfDocument

    try:
        return WhatIfDocument.model_validate(data).model_dump(mode="json")
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(map(str, fault["loc"]))
        message = f"{where}: {fault['msg'].lower()}"
        raise PlannerError([Diagnostic("PLAN_NOT_READABLE", message, "give what `planner whatif --json` printed")]) from None


def _put(output: Path | None, page: str) -> None:
    """Write a page, to standard output where no file is named; a place that cannot be written is a diagnostic, not a traceback."""
    if output is None:
        sys.stdout.write(page)
        return
    from planner.report.output import write_output

    write_output(output, page.encode())

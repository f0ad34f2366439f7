"""`planner report`: a plan as one HTML file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

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
    """Write a plan as one HTML file that opens without a network: the answer, the map, times, memory, alternatives, sources.

    Parameters
    ----------
    plan
        Plan file (`planner solve PROBLEM -o plan.json`), or `-` for standard input.
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
    from planner.plan.reading import read_plan
    from planner.report.page import plan_page

    document = read_plan(plan)
    warnings = age_of(document, None, plan)
    if problem is not None:
        from planner.audit.audit import audit
        from planner.problem.load import load_problem

        loaded = load_problem(problem, override)
        warnings = age_of(document, loaded.sha256, plan)
        found = audit(loaded.problem, loaded.fabric, loaded.architectures, document)
        if found:
            raise PlannerError(found)
    page = plan_page(document, audited=problem is not None, warnings=tuple(f"{item.message}; {item.hint}" for item in warnings))
    if output is None:
        sys.stdout.write(page)
    else:
        write_page(output, page)
    print_diagnostics(warnings, common)
    return ExitCode.ANSWERED


def write_page(output: Path, page: str) -> None:
    """Write a page; a place that cannot be written is a diagnostic, not a traceback."""
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        message = f"cannot write {output}: {error.strerror or error}"
        raise PlannerError(
            [Diagnostic("OUTPUT_NOT_WRITABLE", message, "name a file in a folder that exists and may be written")]
        ) from error

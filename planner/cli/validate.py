"""`planner validate`: is a problem or topology file right? Answers without the solver."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from planner.cli.console import Common, diagnostics_document, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Severity

NO_COMMON = Common()


def validate(
    file: str,
    /,
    *,
    override: Annotated[tuple[str, ...], Parameter(name="--set", negative="")] = (),
    fail_on_warning: Annotated[bool, Parameter(negative="")] = False,
    common: Common = NO_COMMON,
) -> int:
    """Check a problem or topology file: every fault at once, each with file, line, column, and what to write instead.

    Parameters
    ----------
    file
        Problem or topology file (YAML or JSON), or `-` for standard input. A file with `deployments` is a problem.
    override
        Change one value first, as PATH=VALUE; may be repeated.
    fail_on_warning
        Exit with 1 when there are warnings.
    common
        Options of every command.
    """
    from planner.problem.load import load_any

    loaded = load_any(file, override)
    if common.json:
        print_json(diagnostics_document("valid", loaded.warnings))
    else:
        sys.stdout.write(f"{loaded.summary}\n")
        print_diagnostics(loaded.warnings, common)
    warned = any(item.severity is Severity.WARNING for item in loaded.warnings)
    return ExitCode.INVALID if warned and fail_on_warning else ExitCode.ANSWERED

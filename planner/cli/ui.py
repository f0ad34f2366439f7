"""`planner ui`: a local page for questions."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from planner.cli.console import Common
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, PlannerError

NO_COMMON = Common()


def ui(
    problem: str,
    /,
    *,
    port: int = 8765,
    host: str = "127.0.0.1",
    override: Annotated[tuple[str, ...], Parameter(name="--set", negative="")] = (),
    time_limit: str | None = None,
    common: Common = NO_COMMON,
) -> int:
    """Serve a page on which load, targets, prices, GPU counts and failures are moved and the plan answers; Ctrl-C ends it.

    Parameters
    ----------
    problem
        Problem file.
    port
        Port to listen on; 0 takes a free one.
    host
        Address to listen on. Any other than loopback lets other hosts ask, without a password.
    override
        Change one value of the problem or its topology first, as PATH=VALUE; may be repeated.
    time_limit
        Stop the solver after this long (`30s`); without it the limit is a fixed amount of work, so that answers repeat.
    common
        Options of every command.
    """
    from planner.cli.limits import seconds_of
    from planner.ui.controls import controls_of
    from planner.ui.question import Question
    from planner.ui.server import LOOPBACK, PageServer
    from planner.whatif.patching import open_base

    seconds = seconds_of(time_limit)
    base = open_base(problem, override)
    question = Question(problem, override, (), seconds)
    others = host not in LOOPBACK
    try:
        server = PageServer((host, port), question, controls_of(base), base.loaded.problem.name, open_to_others=others)
    except (OSError, OverflowError) as error:
        message = f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}"
        raise PlannerError([Diagnostic("UI_NOT_STARTED", message, "take another `--port`, or 0 for a free one")]) from error
    with server:
        if not common.quiet:
            warning = " (open to other hosts, without a password)" if others else ""
            sys.stderr.write(f"{base.loaded.problem.name} at {server.url}{warning}; Ctrl-C ends it\n")
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return ExitCode.ANSWERED
    return ExitCode.ANSWERED

"""`planner solve`: the plan of a problem."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from planner.cli.console import Common, answer_console, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode
from planner.cli.watching import Watch
from planner.plan.document import PlanDocument

if TYPE_CHECKING:
    from planner.answer.answering import Options

NO_COMMON = Common()


def solve(
    problem: str,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    override: Annotated[tuple[str, ...], Parameter(name="--set", negative="")] = (),
    force: str | None = None,
    explain: str | None = None,
    time_limit: str | None = None,
    gap: str = "0",
    profile: str | None = None,
    pareto: Annotated[bool, Parameter(negative="")] = False,
    pareto_by: Literal["tpot", "ttft"] | None = None,
    log: Annotated[bool, Parameter(name="--log", negative="")] = False,
    common: Common = NO_COMMON,
) -> int:
    """Find the best plan of a problem: shapes, GPUs, cost, times, proof, alternatives and limits.

    Parameters
    ----------
    problem
        Problem file (YAML or JSON), or `-` for standard input.
    output
        Also write the plan as JSON to this file.
    override
        Change one value of the problem or its topology, as PATH=VALUE (`deployments.chat.workload.concurrency=64`); may be repeated.
    force
        Allow only this shape, for example `tp8` or `tp4-pp2-ep4-dp2`.
    explain
        Say why a shape is not chosen, for example `tp16`.
    time_limit
        Stop the solver after this long (`30s`); without it the limit is a fixed amount of work, so that answers repeat.
    gap
        Stop when the plan is proved to be within this share of the best (`1%` or 0.01).
    profile
        Physics to use in place of the problem's: `calibrated`, `hockney`, or a profile file that `planner fit` or `planner measure` wrote.
    pareto
        Also show the cheapest plan at every latency worth asking for: cost against the worst time per token, each point proved.
    pareto_by
        The time that `--pareto` weighs against cost: `tpot` (the default) or `ttft`, the time to first token.
    log
        Show the solvers' own logs on standard error.
    common
        Options of every command.
    """
    from planner.answer.answering import Options, parse_degrees
    from planner.cli.limits import seconds_of, share_of
    from planner.interrupts import Interrupts
    from planner.report.output import check_output

    check_output(output)
    for option, words in (("--force", force), ("--explain", explain)):
        if words is not None:
            parse_degrees(words, option)
    seconds, share = seconds_of(time_limit), share_of(gap)
    by = pareto_by or ("tpot" if pareto else None)
    watch = Watch(sys.stderr, quiet=common.quiet, verbose=common.verbose, log=log, plain=common.no_color)
    interrupts = Interrupts()
    options = Options(
        overrides=override,
        force=force,
        time_limit=seconds,
        gap=share,
        profile=profile,
        pareto=by,
        progress=watch.progress,
        log=watch.log if log else None,
        phase=watch.phase,
        interrupts=interrupts,
    )
    try:
        return _answer(problem, options, watch, output, explain, common)
    finally:
        watch.close()
        interrupts.release()


def _answer(problem: str, options: Options, watch: Watch, output: Path | None, explain: str | None, common: Common) -> int:
    """Answer, show the answer, and give the exit code; Ctrl-C that came while the plan was made does not keep it from being shown."""
    from planner.answer.answering import answer
    from planner.interrupts import asked

    result = answer(problem, options)
    watch.close()
    if result.audit_errors:
        print_diagnostics(result.audit_errors, common)
        sys.stderr.write("internal error: the audit rejected the plan above, which is therefore not shown\n")
        return ExitCode.INTERNAL
    plan = result.plan
    if output is not None:
        _write(output, plan)
    if explain is not None:
        sys.stdout.write("\n".join(result.explain(explain)) + "\n")
        return ExitCode.ANSWERED
    if common.json:
        print_json(plan.model_dump(mode="json"))
    else:
        _print_text(result, common)
    # What would help is part of the text above already.
    shown = set() if common.json or result.outcome.has_plan else set(result.outcome.diagnostics)
    print_diagnostics((item for item in result.warnings if item not in shown), common)
    sys.stdout.flush()
    if result.outcome.interrupted or plan.stopped_by == "interrupt" or asked():
        sys.stderr.write(
            "interrupted: this is the best plan so far\n" if result.outcome.has_plan else "interrupted before there was a plan\n"
        )
        return ExitCode.INTERRUPTED
    return {"infeasible": ExitCode.INFEASIBLE, "unknown": ExitCode.NO_PLAN_IN_TIME}.get(plan.status, ExitCode.ANSWERED)


def _write(output: Path, plan: PlanDocument) -> None:
    """Write the plan as JSON; a place that cannot be written is a diagnostic, not a traceback."""
    from planner.report.output import write_output

    write_output(output, (plan.model_dump_json(indent=2) + "\n").encode())


def _print_text(result: object, common: Common) -> None:
    """Print the plan for a person."""
    from rich.text import Text

    from planner.answer.answering import Answer
    from planner.report.terminal import plan_lines, style_of

    assert isinstance(result, Answer)
    console = answer_console(common)
    for line in plan_lines(result.plan, result.loaded.fabric, result.targets()):
        console.print(Text(line, style=style_of(line)), soft_wrap=True)

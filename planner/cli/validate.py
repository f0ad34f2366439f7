"""`planner validate`: whether a problem or topology file is right, and what a placement of it is worth."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from planner.cli.console import Common, diagnostics_document, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity

if TYPE_CHECKING:
    from planner.plan.document import PlanDocument
    from planner.problem.load import LoadedProblem

NO_COMMON = Common()


def validate(
    file: str,
    placement: str | None = None,
    /,
    *,
    override: Annotated[tuple[str, ...], Parameter(name="--set", negative="")] = (),
    kind: Annotated[str | None, Parameter(name="--as")] = None,
    hosts: str | None = None,
    degrees: str | None = None,
    fail_on_warning: Annotated[bool, Parameter(negative="")] = False,
    common: Common = NO_COMMON,
) -> int:
    """Check a problem or topology file, or a placement of a problem: every fault at once, with its place and its repair.

    Parameters
    ----------
    file
        Problem or topology file (YAML or JSON), or `-` for standard input. A file with `deployments` is a problem.
    placement
        What is to be deployed: a plan.json, ranks on GPUs in YAML, a vLLM, SGLang or TensorRT-LLM command, a hostfile, a LeaderWorkerSet or Dynamo
        manifest. It is judged, its times and cost are predicted, and the optimum is set beside it.
    override
        Change one value first, as PATH=VALUE; may be repeated.
    kind
        What kind of file the placement is, where its content does not tell: plan, yaml, command, hostfile, lws or dynamo.
    hosts
        Hosts of a placement that names none, in order, as a host list (`h100-[01-02]`).
    degrees
        Degrees of a placement that names none, `tp8-pp2` for example.
    fail_on_warning
        Exit with 1 when there are warnings.
    common
        Options of every command.
    """
    if placement is not None:
        return _validate_placement(file, placement, override, kind, hosts, degrees, fail_on_warning, common)
    if kind is not None or hosts is not None or degrees is not None:
        hint = "write `planner validate PROBLEM PLACEMENT`"
        raise PlannerError([Diagnostic("PLACEMENT_MISSING", "--as, --hosts and --degrees tell about a placement, and none is given", hint)])
    from planner.problem.load import load_any

    loaded = load_any(file, override)
    if common.json:
        print_json(diagnostics_document("valid", loaded.warnings))
    else:
        sys.stdout.write(f"{loaded.summary}\n")
        print_diagnostics(loaded.warnings, common)
    warned = any(item.severity is Severity.WARNING for item in loaded.warnings)
    return ExitCode.INVALID if warned and fail_on_warning else ExitCode.ANSWERED


def _validate_placement(
    file: str,
    placement: str,
    override: tuple[str, ...],
    kind: str | None,
    hosts: str | None,
    degrees: str | None,
    fail_on_warning: bool,
    common: Common,
) -> int:
    """Judge a placement, and set the optimum beside it."""
    from planner.placement.judge import judge
    from planner.placement.kinds import read_placement
    from planner.plan.diff import plan_difference
    from planner.problem.load import load_problem
    from planner.report.placement import optimum_lines, placement_document, placement_lines

    if file == placement == "-":
        place = Place(path="PLACEMENT")
        raise PlannerError([Diagnostic("FILE_NOT_READABLE", "standard input cannot be both files", "name one of them", place=place)])
    loaded = load_problem(file, override)
    judgement = judge(loaded, read_placement(placement, loaded, kind, hosts, degrees))
    optimum, remarks = _optimum(loaded)
    difference = plan_difference(judgement.plan, optimum) if optimum is not None and optimum.deployments else None
    if common.json:
        listed = diagnostics_document("valid" if judgement.valid else "invalid", judgement.diagnostics)
        print_json(placement_document(judgement, listed, optimum, difference))
    else:
        from planner.cli.diff import difference_lines

        lines = list(placement_lines(judgement, _targets(loaded), notes=common.verbose))
        if optimum is not None:
            lines += optimum_lines(judgement, optimum)
        if difference is not None:
            lines += list(difference_lines(difference, everything=common.verbose))[3:]
        sys.stdout.write("\n".join(lines) + "\n")
        print_diagnostics((*loaded.warnings, *remarks), common)
    warned = any(item.severity is Severity.WARNING for item in judgement.diagnostics)
    return ExitCode.INVALID if not judgement.valid or (warned and fail_on_warning) else ExitCode.ANSWERED


def _optimum(loaded: LoadedProblem) -> tuple[PlanDocument | None, tuple[Diagnostic, ...]]:
    """The planner's own plan of the problem; None with the reason where there can be none to compare with."""
    from planner.answer.answering import answer_loaded

    try:
        result = answer_loaded(loaded)
    except PlannerError as error:
        reasons = tuple(
            Diagnostic(item.code, f"no optimum is shown: {item.message}", item.hint, Severity.WARNING) for item in error.diagnostics
        )
        return None, reasons
    return (None if result.audit_errors else result.plan), ()


def _targets(loaded: LoadedProblem) -> dict[str, tuple[float | None, float | None, float | None]]:
    """What each deployment asked: TPOT [s], TTFT [s], least efficiency [share]."""
    return {
        asked.name: (
            asked.slo.tpot if asked.slo is not None else None,
            asked.slo.ttft if asked.slo is not None else None,
            asked.min_efficiency,
        )
        for asked in loaded.problem.deployments
    }

"""`planner fit`: benchmark logs -> alpha, beta and a profile; measured step times -> the model's error."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from planner.cli.console import Common, answer_console, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, PlannerError, Severity

if TYPE_CHECKING:
    from planner.calibrate.report import FitReport
    from planner.problem.profiles import Profile

NO_COMMON = Common()


def fit(
    *files: str,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    link: Annotated[tuple[str, ...], Parameter(name="--link", negative="")] = (),
    name: str | None = None,
    base: Literal["calibrated", "hockney"] = "calibrated",
    operation: Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_receive"] | None = None,
    ranks: int | None = None,
    nodes: int | None = None,
    compare: str | None = None,
    profile: str | None = None,
    common: Common = NO_COMMON,
) -> int:
    """Fit alpha and beta of links to nccl-tests output, or compare predicted step times with measured ones.

    Parameters
    ----------
    files
        Output of nccl-tests as text or JSON (-J), any version, with any launcher's prefixes; `-` for standard input.
    output
        Write what was learnt as a profile that a problem can name.
    link
        Link the runs went over, by a name of `planner catalog links`; may be repeated for runs inside and across nodes. Inside a node the GPU tells it.
    name
        Name of the profile; by default the name of the file written.
    base
        Profile whose other figures stand: `calibrated` or `hockney`.
    operation
        What was timed, where the log does not tell.
    ranks
        How many ranks took part, where the log does not tell.
    nodes
        On how many nodes, where the log does not tell.
    compare
        CSV of measured step times (model, gpu, tp, pp, batch, prompt_tokens, output_tokens, tpot_ms) to compare predictions with.
    profile
        Profile to predict with: `calibrated`, `hockney` or a profile file; by default what was just fitted, else `calibrated`.
    common
        Options of every command.
    """
    if not files and compare is None:
        raise PlannerError(
            [Diagnostic("NOTHING_TO_FIT", "there is no file to fit", "name the output of nccl-tests, or --compare STEPS.csv")]
        )
    for flag, given in (("--ranks", ranks), ("--nodes", nodes)):
        if given is not None and not 1 <= given <= 1_000_000:
            raise PlannerError([Diagnostic("OUT_OF_RANGE", f"{flag} is {given}", "write a whole number from 1 to 1,000,000")])
    answer: dict[str, Any] = {"format_version": 1}
    console = answer_console(common, width=None if sys.stdout.isatty() else 160)
    chosen = _profile(profile)
    found: tuple[Diagnostic, ...] = ()
    if files:
        from planner.calibrate.report import Given, fit_files, fit_row, link_row

        report = fit_files(files, Given(link, operation, ranks, nodes))
        found = tuple(_left_out(diagnostic) for diagnostic in report.diagnostics)
        answer["fits"] = [fit_row(*pair) for pair in report.fits]
        answer["links"] = [link_row(each) for each in report.links]
        if not common.json:
            from planner.cli.fit_tables import print_fits

            print_fits(report, console)
        if output is not None:
            _write(report, output, name, base)
        if compare is not None and profile is None and report.links:
            chosen = _fitted(report, name or "fitted", base)
    if compare is not None:
        from planner.calibrate.comparison import compare as compared
        from planner.calibrate.step_rows import read_steps

        comparison = compared(read_steps(compare), chosen, compare)
        answer["comparison"] = comparison.document()
        if not common.json:
            from planner.cli.fit_tables import print_comparison

            print_comparison(comparison, console)
    if common.json:
        from planner.cli.console import diagnostics_document

        print_json({**answer, "diagnostics": diagnostics_document("", found)["diagnostics"]})
    print_diagnostics(found, common)
    return ExitCode.ANSWERED


def _profile(text: str | None) -> Profile:
    from planner.problem.profiles import find_profile

    return find_profile(text or "calibrated", Path())


def _fitted(report: FitReport, name: str, base: str) -> Profile:
    from planner.problem.profiles import Profile, measurements

    document = report.profile(name, base)
    return Profile(name, base, measurements(document)[0], document)


def _left_out(diagnostic: Diagnostic) -> Diagnostic:
    """A run that cannot be used is a warning beside others that can."""
    if diagnostic.severity is not Severity.ERROR:
        return diagnostic
    return replace(diagnostic, severity=Severity.WARNING, message=f"left out: {diagnostic.message}")


def _write(report: FitReport, output: Path, name: str | None, base: str) -> None:
    from planner.calibrate.profile_text import write_profile

    files = ", ".join(dict.fromkeys(Path(fit.file).name for _, fit in report.fits))
    write_profile(report.profile(name or output.stem, base, f"fitted to {files}"[:1000]), output)
    sys.stderr.write(f"wrote {output}; a problem takes it with `profile: {output}`\n")

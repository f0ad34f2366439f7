"""`planner measure`: time collectives on this machine (or under torchrun on many), fit them, store the profile."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from planner.cli.console import Common, answer_console, print_json
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, PlannerError

if TYPE_CHECKING:
    from planner.calibrate.measurement import Measured

NO_COMMON = Common()
Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_receive"]


def measure(
    *,
    backend: Literal["gloo", "nccl"] = "gloo",
    processes: int = 2,
    link: str | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    operation: Annotated[tuple[Operation, ...], Parameter(name="--operation", negative="")] = (),
    smallest: str = "256B",
    largest: str = "64MiB",
    name: str | None = None,
    base: Literal["calibrated", "hockney"] = "calibrated",
    common: Common = NO_COMMON,
) -> int:
    """Time collectives with torch.distributed, fit alpha and beta, store them as a profile. Needs torch: pip install 'llm-deployment-planner[measure]'.

    Parameters
    ----------
    backend
        gloo between processors, nccl between GPUs (on one GPU a process).
    processes
        Processes to start on this machine; under torchrun its ranks count instead.
    link
        Link the run goes over, by a name of `planner catalog links`; with nccl inside one node the GPU tells it.
    output
        Write what was learnt as a profile that a problem can name.
    operation
        Operations to time; all five by default. May be repeated.
    smallest
        Smallest message.
    largest
        Largest message.
    name
        Name of the profile; by default the name of the file written.
    base
        Profile whose other figures stand: `calibrated` or `hockney`.
    common
        Options of every command.
    """
    from planner.calibrate.measurement import Options, check, launch_lines, measured, run_here, under_launcher
    from planner.calibrate.runs import MODELLED
    from planner.quantities import Kind, parse_quantity

    given = {flag: int(parse_quantity(text, Kind.BYTES)) for flag, text in (("smallest", smallest), ("largest", largest))}
    options = Options(backend, processes, operation or MODELLED, given["smallest"], given["largest"])
    check(options)
    if link is not None:
        from planner.problem.profiles import link_name

        link = link_name(link)
    if under_launcher(os.environ):
        from planner.calibrate.measure_worker import measure as measure_rank

        result = measure_rank(options.arguments())
        if result is None:
            return ExitCode.ANSWERED
        found = measured(result)
    else:
        if not common.quiet:
            sys.stderr.write(f"timing {len(options.operations)} operations between {processes} processes with {backend} ...\n")
        found = run_here(options)
    _answer(found, link, output, name, base, common)
    if not common.quiet:
        lines = launch_lines(options, str(output or "cluster.yaml"), link or "infiniband-ndr-400")
        sys.stderr.write("on many nodes: one GPU a node for alpha and beta of the network, then all GPUs\n")
        sys.stderr.writelines(f"  {line}\n" for line in lines)
    return ExitCode.ANSWERED


def _answer(found: Measured, link: str | None, output: Path | None, name: str | None, base: str, common: Common) -> None:
    from planner.calibrate.report import fit_row, link_row, measured_report

    report = measured_report(found, link)
    document: dict[str, Any] = {
        "format_version": 1,
        "backend": found.backend,
        "version": found.version,
        "ranks": found.ranks,
        "nodes": found.nodes,
        "gpu": None if found.gpu is None else found.gpu.name,
        "fits": [fit_row(*pair) for pair in report.fits],
        "links": [link_row(each) for each in report.links],
        "unsupported": dict(found.unsupported),
        "accelerator": None if found.accelerator is None else found.accelerator.model_dump(mode="json"),
    }
    if common.json:
        print_json(document)
    else:
        from planner.cli.fit_tables import print_fits

        console = answer_console(common, width=None if sys.stdout.isatty() else 160)
        print_fits(report, console)
        for operation, reason in found.unsupported.items():
            console.print(f"not timed: {operation}: {reason}", soft_wrap=True, markup=False)
        if found.accelerator is not None:
            console.print(f"accelerator: {found.accelerator.source}", soft_wrap=True, markup=False)
    if output is not None:
        from planner.calibrate.profile_text import write_profile

        profile = report.profile(name or output.stem, base, f"measured with {found.backend} {found.version}")
        if found.accelerator is not None and found.gpu is not None:
            profile = profile.model_copy(update={"gpus": {found.gpu.name: found.accelerator}})
        write_profile(profile, output)
        sys.stderr.write(f"wrote {output}; a problem takes it with `profile: {output}`\n")
    elif found.backend != "gloo" and not report.links:
        raise PlannerError(
            [Diagnostic("LINK_NOT_NAMED", "no link is named for this run", "add --link with a name of `planner catalog links`")]
        )

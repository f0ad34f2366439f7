"""`planner launch`: the files that start a plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from planner.cli.console import Common, diagnostics_document, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, Place, PlannerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.plan.document import PlanDocument

NO_COMMON = Common()


def launch(
    plan: str,
    /,
    *,
    target: Annotated[str, Parameter(name="--for")],
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    problem: str | None = None,
    override: Annotated[tuple[str, ...], Parameter(name="--set", negative="")] = (),
    model_path: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    draft_path: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    name: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    image: str | None = None,
    namespace: str | None = None,
    queue: str | None = None,
    topology_level: str | None = None,
    force: Annotated[bool, Parameter(negative="")] = False,
    common: Common = NO_COMMON,
) -> int:
    """Write a plan as the files that start it: commands, job scripts or manifests, each rank on the GPU that the plan gives it.

    Parameters
    ----------
    plan
        Plan as `planner solve -o` writes it, or `-` for standard input.
    target
        vllm, sglang, tensorrt-llm, dynamo, leader-worker-set, kubernetes, slurm or ray.
    output
        Folder to write into; it must be empty or not there. Without it the files are printed.
    problem
        Problem the plan is for: the plan is audited against it first, and refused where it breaks a rule.
    override
        Change one value of that problem first, as PATH=VALUE; may be repeated.
    model_path
        Where the checkpoint of a deployment is, as DEPLOYMENT=PATH or DEPLOYMENT=HUGGING-FACE-ID; may be repeated.
    draft_path
        Where the weights of a deployment's draft model are, as DEPLOYMENT=PATH or DEPLOYMENT=HUGGING-FACE-ID; may be repeated.
    name
        Name of a deployment in Kubernetes, as DEPLOYMENT=NAME; may be repeated.
    image
        Container image, in place of the engine's own of the planned version.
    namespace
        Kubernetes namespace.
    queue
        Kueue LocalQueue that admits the pods.
    topology_level
        Node label that joins the pods of a replica for Kueue, in place of the one that the plan's locality says.
    force
        Overwrite files of the same name in the folder.
    common
        Options of every command.
    """
    from planner.launch.directory import LaunchOptions
    from planner.launch.launching import launch as write_down
    from planner.launch.writing import write_directory
    from planner.plan.reading import read_plan
    from planner.problem.source_text import display_name

    document = read_plan(plan)
    options = LaunchOptions(
        _pairs("--model-path", model_path),
        _pairs("--name", name),
        image,
        namespace,
        queue,
        topology_level,
        draft_paths=_pairs("--draft-path", draft_path),
    )
    warnings = _checked(document, display_name(plan), problem, override)
    directory = write_down(document, target, options)
    paths: Sequence[Path] = () if output is None else write_directory(directory, output, force=force)
    told = [*warnings, *directory.diagnostics]
    if common.json:
        listed = [{"path": file.path, "executable": file.executable} for file in directory.files]
        if output is None:
            listed = [{**row, "text": file.text} for row, file in zip(listed, directory.files, strict=True)]
        written = None if output is None else str(output)
        print_json({**diagnostics_document("launched", told), "target": directory.target, "directory": written, "files": listed})
        return ExitCode.ANSWERED
    if output is None:
        sys.stdout.write("\n".join(f"==> {file.path} <==\n{file.text}" for file in directory.files))
    else:
        sys.stdout.write("".join(f"wrote {path}\n" for path in paths))
        sys.stdout.write(f"next: {output / 'README.md'}\n")
    print_diagnostics(told, common)
    return ExitCode.ANSWERED


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE of an option that may be repeated.

    Raises
    ------
    PlannerError
        PAIR_NOT_UNDERSTOOD, each that is none.
    """
    wrong = [pair for pair in given if not all(pair.partition("=")[::2])]
    if wrong:
        hint = f"write {option} DEPLOYMENT=VALUE"
        raise PlannerError(Diagnostic("PAIR_NOT_UNDERSTOOD", f"`{pair[:60]}` is no pair", hint, place=Place(path=option)) for pair in wrong)
    return dict(pair.split("=", 1) for pair in given)


def _checked(plan: PlanDocument, file: str, problem: str | None, override: Sequence[str]) -> list[Diagnostic]:
    """What is to be known about the plan before it is started.

    Raises
    ------
    PlannerError
        What the audit finds where the problem is given; PROBLEM_MISSING for changes of a problem that is not.
    """
    from planner.plan.ageing import age_of

    if problem is None:
        if override:
            hint = "name the problem: --problem problem.yaml"
            raise PlannerError(
                [Diagnostic("PROBLEM_MISSING", "--set changes a problem, and none is given", hint, place=Place(path="--set"))]
            )
        return [*age_of(plan, None, file)]
    from planner.audit.audit import audit
    from planner.diagnostics import errors
    from planner.problem.load import load_problem

    loaded = load_problem(problem, override)
    found = audit(loaded.problem, loaded.fabric, loaded.architectures, plan, loaded.current)
    if errors(found):
        raise PlannerError(found)
    return [*age_of(plan, loaded.sha256, file), *found]

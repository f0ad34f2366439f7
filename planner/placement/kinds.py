"""What kind of file a placement is, found from its content or told; and its reading."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.placement import command_lines, hostfile, manifests, plan_file, short_yaml
from planner.placement.inquiry import Inquiry, inquiry
from planner.placement.proposal import Proposal
from planner.problem.load import LoadedProblem
from planner.problem.source_text import display_name, read_source

READERS: Final[Mapping[str, Callable[[Inquiry], Proposal]]] = {
    plan_file.KIND: plan_file.read_plan_file,
    short_yaml.KIND: short_yaml.read_short_yaml,
    command_lines.KIND: command_lines.read_commands,
    hostfile.KIND: hostfile.read_hostfile,
    manifests.LEADER_WORKER_SET: lambda request: manifests.read_manifest(request, manifests.LEADER_WORKER_SET),
    manifests.DYNAMO: lambda request: manifests.read_manifest(request, manifests.DYNAMO),
    manifests.KUBERNETES: lambda request: manifests.read_manifest(request, manifests.KUBERNETES),
}
"""Readers by kind; the kinds are what `--as` takes."""

# Names of engines stand for the kind that holds their commands.
_OTHER_NAMES: Final = {
    **dict.fromkeys(("vllm", "sglang", "tensorrt-llm", "trtllm", "commands", "script"), command_lines.KIND),
    **dict.fromkeys(("slurm", "mpi"), hostfile.KIND),
    **dict.fromkeys(("leaderworkerset", "leader-worker-set"), manifests.LEADER_WORKER_SET),
    **dict.fromkeys(("k8s", "deployment", "statefulset"), manifests.KUBERNETES),
    **dict.fromkeys(("plan.json", "json"), plan_file.KIND),
    **dict.fromkeys(("ranks", "short"), short_yaml.KIND),
}


def read_placement(
    path: str, loaded: LoadedProblem, kind: str | None = None, hosts: str | None = None, degrees: str | None = None
) -> Proposal:
    """Read the placement file at `path` (`-` = standard input) for a problem.

    Parameters
    ----------
    path
        Plan, short YAML, engine commands, hostfile, or LeaderWorkerSet or Dynamo manifest.
    loaded
        The problem it is for.
    kind
        Kind of file, one of `READERS`; None = found from the content.
    hosts
        Hosts that a file which names none runs on, as a host list in order.
    degrees
        Degrees of a file that has none (`tp8-pp2`).

    Raises
    ------
    PlannerError
        When the file cannot be read as that kind, or its kind cannot be told.
    """
    return read_placement_text(read_source(path), display_name(path), loaded, kind, hosts, degrees)


def read_placement_text(
    text: str, file: str, loaded: LoadedProblem, kind: str | None = None, hosts: str | None = None, degrees: str | None = None
) -> Proposal:
    """Read a placement from its text; `file` is shown as its name.

    Raises
    ------
    PlannerError
        As `read_placement` does; WRONG_CHOICE for a kind that is not known.
    """
    if not text.strip():
        raise PlannerError(
            [Diagnostic("EMPTY_FILE", "holds nothing", "see docs/validate.md for the forms a placement may have", place=Place(file))]
        )
    return READERS[known_kind(kind) if kind is not None else kind_of(text, file)](inquiry(text, file, loaded, hosts, degrees))


def known_kind(name: str) -> str:
    """Kind that a name stands for.

    Raises
    ------
    PlannerError
        WRONG_CHOICE.
    """
    found = _OTHER_NAMES.get(name.lower(), name.lower())
    if found not in READERS:
        message = f"`{name[:40]}` is no kind of placement"
        raise PlannerError([Diagnostic("WRONG_CHOICE", message, f"write one of {', '.join(READERS)}", place=Place(path="--as"))])
    return found


def kind_of(text: str, file: str) -> str:
    """Kind of a placement by its content.

    Raises
    ------
    PlannerError
        PLACEMENT_KIND_UNKNOWN.
    """
    head = text.lstrip("\ufeff \t\r\n")
    if head.startswith("{") and '"provenance"' in text and '"format_version"' in text:
        return plan_file.KIND
    if re.search(r"^[ \t]*\"?kind\"?[ \t]*:", text, re.MULTILINE):
        found = manifests.manifest_kind(text, file)
        if found is not None:
            return found
    if re.search(
        r"^[ \t]*[{]?[ \t]*\"?(?:deployments?|name|degrees|ranks|gpus|[tped]p|(?:tensor|data|expert|pipeline)_parallel(?:_size)?)\"?[ \t]*:(?:[ \t]|$)",
        text,
        re.MULTILINE,
    ):
        return short_yaml.KIND
    if command_lines.looks_like_commands(text, file):
        return command_lines.KIND
    if hostfile.looks_like_hostfile(text):
        return hostfile.KIND
    hint = f"say what it is: `--as` and one of {', '.join(READERS)}"
    raise PlannerError(
        [Diagnostic("PLACEMENT_KIND_UNKNOWN", "the content does not tell what kind of placement this is", hint, place=Place(file))]
    )

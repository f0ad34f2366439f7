"""A hostfile -> a placement: one host a line for each rank (SLURM_HOSTFILE), or a host with its slots (mpirun, DeepSpeed).

A host named k times gives its GPUs 0 to k - 1 in that order. Ranks follow the lines; degrees come from `--degrees`, a comment, or the problem.
"""

from __future__ import annotations

import re
from typing import Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.placement.command_lines import stage_order
from planner.placement.gpu_words import gpus_of_word, host_names
from planner.placement.inquiry import NAMES, Inquiry, degrees_of, no_degrees, no_deployment
from planner.placement.proposal import MOST_RANKS, Proposal, ProposedDeployment, ProposedGpu, ProposedReplica

KIND: Final = "hostfile"
LONGEST_LINE: Final = 4096
_LINE: Final = re.compile(
    r"(?P<hosts>[A-Za-z0-9][A-Za-z0-9._,/\[\]-]*?)(?::(?P<gpus>\[[0-9,-]+\]|[0-9][0-9,-]*))?(?:[ \t]+(?:slots|max_slots|max-slots)[ \t]*=[ \t]*(?P<slots>[0-9]{1,6}))*[ \t]*"
)


def read_hostfile(request: Inquiry) -> Proposal:
    """Read a hostfile.

    Raises
    ------
    PlannerError
        DEPLOYMENT_NOT_NAMED, DEGREES_MISSING, and what is wrong with the degrees named beside the file.
    """
    faults: list[Diagnostic] = []
    gpus: list[ProposedGpu] = []
    next_gpu: dict[str, int] = {}
    for number, raw in enumerate(request.text.splitlines(), start=1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        place = Place(request.file, number, len(raw) - len(raw.lstrip()) + 1)
        found = _LINE.fullmatch(line) if len(line) <= LONGEST_LINE else None
        if found is None:
            hint = "write one host a line, or `host slots=8`"
            faults.append(Diagnostic("HOSTFILE_LINE", f"`{line[:60]}` is no host", hint, place=place))
            continue
        try:
            gpus += _gpus(request, found, place, next_gpu)
        except PlannerError as error:
            faults += error.diagnostics
        if len(gpus) > MOST_RANKS:
            raise PlannerError([*faults, Diagnostic("OUT_OF_RANGE", f"more than {MOST_RANKS:,} ranks", "split the file", place=place)])
    name = request.only_deployment()
    if name is None:
        raise PlannerError([*faults, no_deployment(request, request.start)])
    index = request.deployment_index(name)
    fixed = {} if index is None else request.fixed_degrees(index)
    named = request.named_degrees()
    parts = {**fixed, **(named[0] if named is not None else {})}
    if not set(parts) & set(NAMES):
        raise PlannerError([*faults, no_degrees(request.start)])
    degrees = degrees_of(parts)
    size = degrees.gpus
    if not gpus:
        faults.append(Diagnostic("NO_HOSTS", "the file names no host", "write one host a line", place=request.start))
    if len(gpus) % size:
        message = f"{len(gpus)} ranks are listed, {degrees} needs {size} a replica: {len(gpus) % size} are left over"
        faults.append(Diagnostic("GPU_COUNT_MISMATCH", message, f"list {size} ranks, or a multiple of it", place=request.start))
    count = max(len(gpus) // size, 1 if gpus else 0)
    replicas = [
        ProposedReplica(degrees, stage_order(gpus[first : first + size], degrees), gpus[first].place)
        for first in range(0, count * size, size)
    ]
    return Proposal(KIND, request.file, (ProposedDeployment(name, request.start, tuple(replicas)),), tuple(faults))


def _gpus(request: Inquiry, found: re.Match[str], place: Place, next_gpu: dict[str, int]) -> list[ProposedGpu]:
    if found["gpus"] is not None:
        return list(gpus_of_word(f"{found['hosts']}:{found['gpus']}", place, request.fabric))
    slots = int(found["slots"] or 1)
    if slots > MOST_RANKS:
        raise PlannerError([Diagnostic("OUT_OF_RANGE", f"{slots:,} slots on one host", "write the ranks of one host", place=place)])
    gpus = []
    for node in host_names(found["hosts"], place):
        start = next_gpu.get(node, 0)
        gpus += [ProposedGpu(node, index, place) for index in range(start, start + slots)]
        next_gpu[node] = start + slots
    return gpus


def looks_like_hostfile(text: str) -> bool:
    """Tell whether every line names hosts and nothing else."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()[:2000]]
    lines = [line for line in lines if line]
    return bool(lines) and all(len(line) <= LONGEST_LINE and _LINE.fullmatch(line) is not None for line in lines)

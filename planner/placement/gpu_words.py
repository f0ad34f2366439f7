"""Names of GPUs as people write them: `h100-01:3`, `h100-01:[0-3]`, `h100-01:0,2,1,3`, `h100-[01-02]:[0-7]`, or a node alone for all its GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.placement.proposal import ProposedGpu
from planner.topology.fabric import Fabric
from planner.topology.host_lists import HostListError, expand_hosts

MOST_HOSTS: Final = 100_000
LARGEST_INDEX: Final = 1023
_RANGE: Final = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
_PART: Final = re.compile(r"(?:[^,\s\[]|\[[^\]]*\]?)+")
_MIG: Final = re.compile(r"mig[-_0-9]|mig$", re.IGNORECASE)


def slices(word: str) -> bool:
    """Tell whether a word names a slice of a GPU (`MIG-GPU-...`, `mig-3g.40gb`) and no whole one."""
    return _MIG.match(word.strip()) is not None


def gpu_indices(text: str, place: Place) -> tuple[int, ...]:
    """Indices that `0-3`, `[0,2,1,3]` or `5` stand for, in the order written: order is what ranks follow.

    Raises
    ------
    PlannerError
        GPU_LIST_INVALID.
    """
    found: list[int] = []
    inside = text.strip().removeprefix("[").removesuffix("]")
    for piece in inside.split(","):
        match = _RANGE.fullmatch(piece.strip())
        low = int(match[1]) if match else -1
        high = int(match[2] or match[1]) if match else -1
        if match is None or not low <= high <= LARGEST_INDEX:
            message = f"`{text[:60]}` is no list of GPUs"
            raise PlannerError([Diagnostic("GPU_LIST_INVALID", message, "write 3, [0-7] or [0,2,1,3], counted from 0", place=place)])
        found.extend(range(low, high + 1))
    return tuple(found)


def host_names(text: str, place: Place) -> tuple[str, ...]:
    """Names of the hosts that comma- or blank-separated host lists stand for, in the order written.

    Raises
    ------
    PlannerError
        HOST_LIST_INVALID, HOST_LIST_TOO_LARGE.
    """
    names: list[str] = []
    for part in _PART.findall(text):
        try:
            names.extend(expand_hosts(part, MOST_HOSTS - len(names)))
        except HostListError as error:
            raise PlannerError([Diagnostic(error.code, error.message, error.hint, place=place)]) from None
    return tuple(names)


def gpus_of_word(word: str, place: Place, fabric: Fabric) -> tuple[ProposedGpu, ...]:
    """GPUs of one word, in the order written; a node alone stands for all its GPUs.

    Raises
    ------
    PlannerError
        GPU_LIST_INVALID, HOST_LIST_INVALID, HOST_LIST_TOO_LARGE, MIG_NO_MULTI_INSTANCE.
    """
    text = word.strip()
    head, colon, tail = text.partition(":")
    if colon and slices(tail):
        message = f"`{text[:80]}` is a slice of a GPU, and ranks need whole ones"
        raise PlannerError([Diagnostic("MIG_NO_MULTI_INSTANCE", message, "serve one replica a slice, or give the whole card", place=place)])
    indices = gpu_indices(tail, place) if colon else None
    found: list[ProposedGpu] = []
    for node in host_names(head, place):
        own = indices if indices is not None else range(gpus_of_node(fabric, node))
        if not own:
            hint = "write node:index, such as h100-01:3"
            raise PlannerError([Diagnostic("NODE_UNKNOWN", f"{node}: the topology has no such node", hint, place=place)])
        found.extend(ProposedGpu(node, index, place) for index in own)
    return tuple(found)


def gpus_of_words(words: Iterable[tuple[str, Place]], fabric: Fabric) -> tuple[tuple[ProposedGpu, ...], list[Diagnostic]]:
    """GPUs of all words in order, with what is wrong about the words that could not be read."""
    found: list[ProposedGpu] = []
    faults: list[Diagnostic] = []
    for word, place in words:
        try:
            found.extend(gpus_of_word(word, place, fabric))
        except PlannerError as error:
            faults.extend(error.diagnostics)
    return tuple(found), faults


def gpus_of_node(fabric: Fabric, node: str) -> int:
    """GPUs of a node; 0 where the topology has no such node."""
    row = fabric.inventory.index.get(node)
    return 0 if row is None else fabric.pools[int(fabric.pool_of_node[row])].gpus_per_node

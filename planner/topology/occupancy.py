"""Taken and failed GPUs: "h100-01:3", "h100-[02-03]:[0,4-7]", or whole nodes by name."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.catalog.nearest import nearest
from planner.diagnostics import Diagnostic, Place
from planner.topology.document import MOST_NODES, TopologyDocument
from planner.topology.host_lists import HostListError, expand_hosts
from planner.topology.inventory import FAILED, TAKEN, Inventory

_INDICES: Final = re.compile(r"\[?([0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*)\]?")


def _read_indices(text: str) -> list[int] | None:
    """GPU indices of "3", "4-7" or "[0,4-7]"; None where the text is none of these."""
    found = _INDICES.fullmatch(text)
    if found is None or text.startswith("[") != text.endswith("]"):
        return None
    indices: list[int] = []
    for piece in found[1].split(","):
        low, _, high = piece.partition("-")
        indices.extend(range(int(low), int(high or low) + 1))
    return indices


def read_states(document: TopologyDocument, inventory: Inventory) -> tuple[NDArray[np.int8], list[Diagnostic]]:
    """Find the state of every GPU [G], and every fault in what the document says of it.

    A GPU that is both taken and failed counts as failed: nobody can use it when the work on it ends.
    """
    state = np.zeros(len(inventory.state), dtype=np.int8)
    faults: list[Diagnostic] = []
    for key, entries, value in (("taken", document.taken, TAKEN), ("failed", document.failed, FAILED)):
        for number, entry in enumerate(entries):
            faults.extend(_mark(entry, f"{key}.{number}", value, state, inventory))
    return state, faults


def _mark(entry: str, path: str, value: int, state: NDArray[np.int8], inventory: Inventory) -> list[Diagnostic]:
    def fault(code: str, message: str, hint: str) -> Diagnostic:
        return Diagnostic(code, message, hint, place=Place(path=path))

    hosts, colon, rest = entry.partition(":")
    indices: list[int] | None = None
    if colon:
        indices = _read_indices(rest.strip())
        if not indices:
            return [
                fault(
                    "GPU_LIST_INVALID",
                    f"`{rest.strip()}` in `{entry}` names no GPUs",
                    "write node:3, node:[0,4-7], or the node's name alone",
                )
            ]
    try:
        names = expand_hosts(hosts.strip(), MOST_NODES)
    except HostListError as error:
        return [fault(error.code, error.message, error.hint)]
    faults: list[Diagnostic] = []
    for name in names:
        row = inventory.index.get(name)
        if row is None:
            close = nearest(name, inventory.names[:10_000], limit=3)
            faults.append(
                fault(
                    "UNKNOWN_NODE", f"no node is called {name}", f"nearest: {', '.join(close)}" if close else "name one of the nodes above"
                )
            )
            continue
        start, end = int(inventory.first_gpu[row]), int(inventory.first_gpu[row + 1])
        outside = [index for index in indices or () if index >= end - start]
        if outside:
            shown = ", ".join(map(str, outside[:8]))
            faults.append(fault("GPU_INDEX_OUT_OF_RANGE", f"{name} has GPUs 0 to {end - start - 1}, not {shown}", "count GPUs from 0"))
            continue
        if indices is None:
            state[start:end] = value
        else:
            state[[start + index for index in indices]] = value
    return faults

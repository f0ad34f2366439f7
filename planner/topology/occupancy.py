"""Taken and failed GPUs: "h100-01:3", "h100-[02-03]:[0,4-7]", or whole nodes by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.catalog.nearest import nearest
from planner.diagnostics import Diagnostic, Place
from planner.topology.host_lists import HostListError, expand_hosts
from planner.topology.inventory import FAILED, TAKEN, Inventory
from planner.topology.node_groups import MOST_NODES
from planner.topology.sources import Sources

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


def read_states(sources: Sources, inventory: Inventory) -> tuple[NDArray[np.int8], list[Diagnostic]]:
    """Find the state of every GPU [G], and every fault in what the sources say of it.

    A GPU that is both taken and failed counts as failed: nobody can use it when the work on it ends.
    """
    state = np.zeros(len(inventory.state), dtype=np.int8)
    faults: list[Diagnostic] = []
    for entries, value in ((sources.taken, TAKEN), (sources.failed, FAILED)):
        for path, entry in entries:
            faults.extend(_mark(entry, path, value, state, inventory))
    return state, faults


def named_gpus(entries: Sequence[tuple[str, str]], inventory: Inventory) -> tuple[NDArray[np.bool_], list[Diagnostic]]:
    """Find the GPUs [G] that entries (path, text) name in the form of `taken` and `failed`, and every fault in them."""
    named = np.zeros(len(inventory.state), dtype=np.int8)
    faults = [fault for path, entry in entries for fault in _mark(entry, path, 1, named, inventory)]
    return named.astype(np.bool_), faults


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
    unknown = [name for name in names if name not in inventory.index]
    if unknown:
        close = nearest(unknown[0], inventory.names[:10_000], limit=3)
        more = f" and {len(unknown) - 1} more hosts are" if len(unknown) > 1 else " is"
        hint = f"nearest: {', '.join(close)}" if close else "name hosts that nodes: describes"
        faults.append(fault("UNKNOWN_NODE", f"{unknown[0]}{more} no node of this topology", hint))
    for row in (inventory.index[name] for name in names if name in inventory.index):
        start, end = int(inventory.first_gpu[row]), int(inventory.first_gpu[row + 1])
        outside = [index for index in indices or () if index >= end - start]
        if outside:
            shown = ", ".join(map(str, outside[:8]))
            message = f"{inventory.names[row]} has GPUs 0 to {end - start - 1}, not {shown}"
            faults.append(fault("GPU_INDEX_OUT_OF_RANGE", message, "count GPUs from 0"))
            break  # the other hosts of the entry are as short
        state[start:end][indices if indices is not None else slice(None)] = value
    return faults

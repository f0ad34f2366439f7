"""Failure domains of every GPU, and which replicas lose a GPU with each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.audit.case import Case
from planner.audit.columns import IntArray


@dataclass(frozen=True)
class Touched:
    """Pairs of a replica and a failure domain it has a GPU in, once each: `replica` rows and `domain` numbers [n]; `names` of the domains."""

    replica: IntArray
    domain: IntArray
    names: tuple[str, ...]


def touched(case: Case, kind: str) -> Touched:
    """Every replica with every failure domain of a kind that holds one of its ranks; ranks on unknown GPUs touch nothing."""
    known = np.flatnonzero(case.site >= 0)
    numbers, names = _domains(case, kind, case.site[known])
    pairs = np.unique(np.stack([case.ranks.replica[known], numbers]), axis=1)
    return Touched(pairs[0], pairs[1], names)


def _domains(case: Case, kind: str, sites: IntArray) -> tuple[IntArray, tuple[str, ...]]:
    """Number of the failure domain of each GPU given by its row, and the domains' names."""
    if kind == "gpu":
        rows, found = np.unique(sites, return_inverse=True)
        nodes = case.sites.node[rows]
        names = tuple(f"{case.fabric.nodes[node]}:{row - case.sites.first[node]}" for row, node in zip(rows, nodes, strict=True))
        return found.astype(np.int64), names
    by_node, which = np.unique(case.sites.node[sites], return_inverse=True)
    numbers: dict[str, int] = {}
    of_node = [_number(numbers, case.fabric.failure_domains(case.fabric.nodes[node]).get(kind, "")) for node in by_node]
    return np.array(of_node, dtype=np.int64)[which], tuple(numbers)


def _number(numbers: dict[str, int], name: str) -> int:
    return numbers.setdefault(name, len(numbers))

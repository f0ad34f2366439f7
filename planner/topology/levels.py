"""Levels of nearness, smallest first, and the components they cut the fabric into.

Two GPUs are joined at a level when a path of links up to that level connects them: containment is connectivity in the graph, so it
holds whatever the wiring (in an NVL72 rack the hosts lie inside the domain, in a PCIe server the pairs lie inside the host).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

# Containment order. `domain` and `host` swap places with the wiring (a tray lies inside its NVL72 domain, a domain fills its HGX host),
# which is why a pool lists the levels it has; between nodes the order is always this one.
LEVELS: Final[tuple[str, ...]] = ("gpu", "pair", "mesh", "domain", "host", "leaf", "spine", "fabric")
INSIDE_HOST: Final[tuple[str, ...]] = ("pair", "mesh")
NETWORK: Final[tuple[str, ...]] = ("leaf", "spine", "fabric")

Labels = NDArray[np.int64]


class Components:
    """Connected components under links that are added level by level (disjoint sets with path halving).

    Vertices are integers from 0; links are added with `join`, and `labels` numbers the components in the order their first vertex appears.
    """

    def __init__(self, vertices: int) -> None:
        self._parent = list(range(vertices))

    def add(self) -> int:
        """Add a vertex and return its number."""
        self._parent.append(len(self._parent))
        return len(self._parent) - 1

    def find(self, vertex: int) -> int:
        """Representative of the component that holds `vertex`."""
        parent = self._parent
        while parent[vertex] != vertex:
            parent[vertex] = parent[parent[vertex]]
            vertex = parent[vertex]
        return vertex

    def join(self, one: int, other: int) -> None:
        """Add a link between two vertices."""
        first, second = sorted((self.find(one), self.find(other)))
        self._parent[second] = first

    def join_all(self, vertices: Iterable[int]) -> None:
        """Add links that connect all the vertices."""
        first: int | None = None
        for vertex in vertices:
            if first is None:
                first = vertex
            else:
                self.join(first, vertex)

    def labels(self, vertices: Sequence[int]) -> Labels:
        """Component number of each of `vertices`, counted from 0 in order of first appearance."""
        numbers: dict[int, int] = {}
        return np.fromiter(
            (numbers.setdefault(self.find(vertex), len(numbers)) for vertex in vertices), dtype=np.int64, count=len(vertices)
        )

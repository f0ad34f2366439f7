"""Every GPU of the fabric as columns: where it is, in what state, and what it shares with others at each level.

Labels are the fabric's connected components; what a set of GPUs shares is recomputed from them here, for all sets at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.topology.fabric import Fabric
from planner.topology.inventory import FAILED, TAKEN

__all__ = ["FAILED", "TAKEN", "Sites"]

IntArray = NDArray[np.int64]
# Levels between nodes: what hangs on one leaf, one spine, one network.
BETWEEN_NODES = ("leaf", "spine", "fabric")
INSIDE_NODE = ("pair", "mesh")


@dataclass(frozen=True)
class Sites:
    """GPUs as columns of equal length G, in the fabric's own order.

    `first` [nodes + 1] is where each node's GPUs start. `labels` maps a level to the component of every GPU there: two GPUs are joined at a
    level when their labels are equal. `scope` numbers the scale-up scopes, `scope_names` names them.
    """

    node_codes: Mapping[str, int]
    scope_codes: Mapping[str, int]
    scope_names: tuple[str, ...]
    first: IntArray
    node: IntArray
    pool: IntArray
    state: IntArray
    scope: IntArray
    labels: Mapping[str, IntArray]

    @classmethod
    def of(cls, fabric: Fabric) -> Sites:
        """Columns of `fabric`."""
        inventory = fabric.inventory
        first = np.asarray(inventory.first_gpu, dtype=np.int64)
        node = np.repeat(np.arange(len(inventory.names), dtype=np.int64), np.diff(first))
        pool = np.asarray(fabric.pool_of_node, dtype=np.int64)[node]
        scope = np.asarray(inventory.scope, dtype=np.int64)[node]
        index_in_node = np.arange(len(node), dtype=np.int64) - first[node]
        labels: dict[str, IntArray] = {"gpu": np.arange(len(node), dtype=np.int64), "host": node}
        for level in BETWEEN_NODES:
            labels[level] = np.asarray(inventory.level_labels(level), dtype=np.int64)[node]
        labels["domain"] = scope
        for level in INSIDE_NODE:
            labels[level] = node * cls._stride(fabric) + cls._parts(fabric, level, pool, index_in_node)
        names = tuple(fabric.scopes.name(number) for number in range(len(fabric.scopes)))
        codes = {name: number for number, name in enumerate(names)}
        return cls(inventory.index, codes, names, first, node, pool, np.asarray(inventory.state, dtype=np.int64), scope, labels)

    @staticmethod
    def _stride(fabric: Fabric) -> int:
        """More than any number of a pair or mesh inside a node."""
        return 1 + 2 * max((pool.gpus_per_node for pool in fabric.pools), default=0)

    @staticmethod
    def _parts(fabric: Fabric, level: str, pool: IntArray, index_in_node: IntArray) -> IntArray:
        """Number of the pair or mesh each GPU belongs to inside its node; GPUs of no group have one of their own."""
        parts = index_in_node.copy()
        for kind in fabric.pools:
            if kind.wiring.level == level:
                groups: dict[int, int] = {}
                for number, members in enumerate(kind.wiring.groups):
                    groups |= dict.fromkeys(members, number)
                lone = len(kind.wiring.groups)
                own: list[Any] = [groups.get(gpu, lone + gpu) for gpu in range(kind.gpus_per_node)]
                here = pool == kind.index
                parts[here] = np.array(own, dtype=np.int64)[index_in_node[here]]
        return parts

    @property
    def count(self) -> int:
        """GPUs of the fabric."""
        return len(self.node)

    def gpus_of(self, node: int) -> int:
        """GPUs of one node."""
        return int(self.first[node + 1] - self.first[node])

    def lookup(self, node: IntArray, gpu: IntArray) -> IntArray:
        """Row of each GPU given by node code and index [n]; -1 where there is none."""
        if not len(self.node):
            return np.full(len(node), -1, dtype=np.int64)
        known = np.where(node >= 0, node, 0)
        inside = (node >= 0) & (gpu >= 0) & (gpu < self.first[known + 1] - self.first[known])
        return np.where(inside, self.first[known] + gpu, -1)

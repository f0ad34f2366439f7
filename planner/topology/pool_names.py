"""Pools in words: their GPU type, and their nodes where several pools have the same GPUs."""

from __future__ import annotations

from collections import Counter

import numpy as np

from planner.topology.fabric import Fabric


def nodes_of_pools(fabric: Fabric) -> tuple[str, ...]:
    """Nodes of every pool whose GPU type another pool has too, "" for the others: the first node and how many are like it."""
    several = Counter(pool.gpu.name for pool in fabric.pools)
    if all(count == 1 for count in several.values()):
        return ("",) * len(fabric.pools)
    inventory = fabric.inventory
    pool_of_node = np.asarray(fabric.scopes.pool)[inventory.scope]
    found = []
    for pool in fabric.pools:
        rows = np.flatnonzero(pool_of_node == pool.index)
        if several[pool.gpu.name] == 1 or not len(rows):
            found.append("")
            continue
        first = inventory.names[int(rows[0])]
        found.append(first if len(rows) == 1 else f"{first} and {len(rows) - 1} alike")
    return tuple(found)


def pools_in_words(fabric: Fabric) -> tuple[str, ...]:
    """Every pool as `h100-sxm-80gb`, or `h100-sxm-80gb of node-1` where others have the same GPUs."""
    return tuple(
        f"{pool.gpu.name} of {nodes}" if nodes else pool.gpu.name for pool, nodes in zip(fabric.pools, nodes_of_pools(fabric), strict=True)
    )

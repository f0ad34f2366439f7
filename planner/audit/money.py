"""What every replica costs, recomputed from the topology: price per GPU-hour, or whole nodes shared by the GPUs used on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.audit.case import Case
from planner.topology.pools import Pool


def billed_by_node(pool: Pool) -> bool:
    """Whether a node is paid as a whole once one of its GPUs is used."""
    return pool.billing == "node" and pool.price_per_node is not None


def unpriced_pools(case: Case) -> list[Pool]:
    """Pools in use whose GPUs have no price, neither in the topology nor as a catalog example."""
    used = np.bincount(case.sites.pool[case.site[case.site >= 0]], minlength=len(case.fabric.pools))
    return [pool for pool in case.fabric.pools if used[pool.index] and not billed_by_node(pool) and not pool.price_per_gpu]


def replica_prices(case: Case) -> NDArray[np.float64] | None:
    """Price of every replica per hour [replicas]; None when a pool in use has no price, or GPUs are unknown.

    A node billed whole is shared among its ranks evenly, whichever replica they belong to, so the shares add up to its price.
    """
    if not case.rows or bool((case.site < 0).any()) or unpriced_pools(case):
        return None
    pool_of_rank = case.sites.pool[case.site]
    ranks_on_node = np.bincount(case.ranks.node, minlength=len(case.sites.node_codes))
    share = np.zeros(len(case.site))
    for pool in case.fabric.pools:
        here = pool_of_rank == pool.index
        if not here.any():
            continue
        if billed_by_node(pool):
            share[here] = float(pool.price_per_node or 0.0) / ranks_on_node[case.ranks.node[here]]
        else:
            share[here] = float(pool.price_per_gpu or 0.0)
    return np.bincount(case.ranks.replica, weights=share, minlength=len(case.rows)).astype(np.float64)

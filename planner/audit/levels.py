"""How far the ranks of each replica really are apart, recomputed from the fabric's containment labels.

A set of GPUs is joined by the smallest level whose label all of them share. Levels are indices into `Pool.levels` of the
replica's pool, smallest first; `APART` where no level joins them or a GPU is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.audit.columns import IntArray, RankColumns, group_starts, uniform
from planner.audit.sites import Sites
from planner.topology.pools import Pool

APART = 99


@dataclass(frozen=True)
class PlacedLevels:
    """Per replica [n]: the widest level any of its TP groups needs, any of its stages needs, and the whole of it needs.

    `tp_scopes` and `stage_scopes` are the most scale-up scopes one TP group or one stage touches.
    """

    tp: IntArray
    stage: IntArray
    replica: IntArray
    tp_scopes: IntArray
    stage_scopes: IntArray


class Placement(NamedTuple):
    """What levels are read from: the ranks, the GPU of each, the fabric's GPUs, its pools, and the pool of each replica."""

    ranks: RankColumns
    site: IntArray
    sites: Sites
    pools: Sequence[Pool]
    row_pool: IntArray


def placed_levels(placement: Placement) -> PlacedLevels:
    """Levels and scopes of every replica of the plan, each part grouped by the ranks' own stage and dp numbers."""
    ranks = placement.ranks
    known = placement.site >= 0
    no_part = np.zeros_like(ranks.stage)
    columns = []
    for parts in ((ranks.stage, ranks.dp_rank), (ranks.stage, no_part), (no_part, no_part)):
        order = np.lexsort((parts[1], parts[0], ranks.replica))
        order = order[known[order]]
        starts = group_starts(ranks.replica[order], parts[0][order], parts[1][order])
        owner = ranks.replica[order][starts]
        columns.append((_levels(placement, order, starts, owner), _scopes(placement, order, starts, owner)))
    return PlacedLevels(columns[0][0], columns[1][0], columns[2][0], columns[0][1], columns[1][1])


def _levels(placement: Placement, order: IntArray, starts: IntArray, owner: IntArray) -> IntArray:
    """Widest level per replica over its groups of rows."""
    level = np.full(len(starts), APART, dtype=np.int64)
    if len(starts):
        site = placement.site[order]
        group_pool = placement.row_pool[owner]
        joined = {
            name: uniform(placement.sites.labels[name][site], starts) for name in {name for pool in placement.pools for name in pool.levels}
        }
        for pool in placement.pools:
            # From the widest level down, so that the smallest that joins is what remains.
            for index in reversed(range(len(pool.levels))):
                level[(group_pool == pool.index) & joined[pool.levels[index]]] = index
    widest = np.full(len(placement.row_pool), -1, dtype=np.int64)
    np.maximum.at(widest, owner, level)
    return np.where(widest < 0, APART, widest)


def _scopes(placement: Placement, order: IntArray, starts: IntArray, owner: IntArray) -> IntArray:
    """Most scale-up scopes per replica over its groups of rows."""
    most = np.zeros(len(placement.row_pool), dtype=np.int64)
    if len(starts):
        lengths = np.diff(np.append(starts, len(order)))
        group = np.repeat(np.arange(len(starts)), lengths)
        stride = len(placement.sites.scope_names)
        pairs = np.unique(group * stride + placement.sites.scope[placement.site[order]])
        np.maximum.at(most, owner, np.bincount(pairs // stride, minlength=len(starts)))
    return most

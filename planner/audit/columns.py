"""The ranks of a whole plan as columns, so that a plan of 100,000 GPUs is checked in array operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from planner.plan.document import PlanDocument, RankDocument, ReplicaDocument

IntArray = NDArray[np.int64]
INTEGERS: Callable[[RankDocument], tuple[int, ...]] = attrgetter("rank", "stage", "tp_rank", "dp_rank", "ep_rank", "gpu")
# Larger than any count of GPUs or ranks: keeps a wild integer of a hand-written document inside 64 bits.
WILD = 2**40


@dataclass(frozen=True)
class ReplicaRow:
    """One replica of the plan: where it is written (`deployment` and `number` count from 0), its document, and its rows in the rank columns."""

    deployment: int
    number: int
    name: str
    document: ReplicaDocument
    first: int
    end: int


@dataclass(frozen=True)
class RankColumns:
    """Every rank of the plan, in document order, as columns of equal length n.

    `replica` indexes the replica rows; `node` and `domain` are the codes of those names in the fabric, -1 for a name it does not have.
    """

    replica: IntArray
    rank: IntArray
    stage: IntArray
    tp_rank: IntArray
    dp_rank: IntArray
    ep_rank: IntArray
    node: IntArray
    gpu: IntArray
    domain: IntArray


def replica_rows(plan: PlanDocument) -> tuple[ReplicaRow, ...]:
    """All replicas of the plan in document order, each with the span of its ranks."""
    rows: list[ReplicaRow] = []
    first = 0
    for index, deployment in enumerate(plan.deployments):
        for number, replica in enumerate(deployment.replicas):
            end = first + len(replica.ranks)
            rows.append(ReplicaRow(index, number, deployment.name, replica, first, end))
            first = end
    return tuple(rows)


def rank_columns(rows: tuple[ReplicaRow, ...], node_codes: Mapping[str, int], domain_codes: Mapping[str, int]) -> RankColumns:
    """Columns of all ranks of `rows`; names of nodes and domains become codes once."""
    ranks = [rank for row in rows for rank in row.document.ranks]
    try:
        numbers = np.array(list(map(INTEGERS, ranks)), dtype=np.int64).reshape(-1, 6)
    except OverflowError:
        clipped = [[max(-WILD, min(WILD, number)) for number in INTEGERS(rank)] for rank in ranks]
        numbers = np.array(clipped, dtype=np.int64).reshape(-1, 6)
    node = np.fromiter((node_codes.get(rank.node, -1) for rank in ranks), dtype=np.int64, count=len(ranks))
    domain = np.fromiter((domain_codes.get(rank.domain, -1) for rank in ranks), dtype=np.int64, count=len(ranks))
    sizes = [row.end - row.first for row in rows]
    replica = np.repeat(np.arange(len(rows), dtype=np.int64), sizes)
    rank, stage, tp_rank, dp_rank, ep_rank, gpu = numbers.T
    return RankColumns(replica, rank, stage, tp_rank, dp_rank, ep_rank, node, gpu, domain)


def group_starts(*keys: IntArray) -> IntArray:
    """First row of every run of equal keys; the rows must already be sorted by them."""
    if keys[0].size == 0:
        return np.zeros(0, dtype=np.int64)
    change = np.zeros(keys[0].size, dtype=bool)
    change[0] = True
    for key in keys:
        change[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(change)


def uniform(values: IntArray, starts: IntArray) -> NDArray[np.bool_]:
    """Whether each run of rows has one single value; `starts` are the first rows of the runs."""
    result: NDArray[np.bool_] = np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts)
    return result

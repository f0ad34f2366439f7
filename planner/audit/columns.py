"""The replicas and ranks of a whole plan as columns, so that a plan of 100,000 GPUs is checked in array operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from planner.plan.document import MemoryDocument, PlanDocument, RankDocument, ReplicaDocument, TimesDocument

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

INTEGERS: Callable[[RankDocument], tuple[int, ...]] = attrgetter("rank", "stage", "tp_rank", "dp_rank", "ep_rank", "gpu")
NODE: Callable[[RankDocument], str] = attrgetter("node")
DOMAIN: Callable[[RankDocument], str] = attrgetter("domain")
# Larger than any count of GPUs or ranks: keeps a wild integer of a hand-written document inside 64 bits.
WILD = 2**40

FIGURES = (
    *(f"memory.{name}" for name in MemoryDocument.model_fields),
    *(f"times.{name}" for name in TimesDocument.model_fields),
    "capacity",
    "throughput_tokens_s",
    "price_per_hour",
    "usd_per_million_output_tokens",
)
# Columns of `ReplicaColumns.missing`: the two figures that may be left out.
PRICE, PER_MILLION = 0, 1
COLUMN = {name: number for number, name in enumerate(FIGURES)}
SHAPE_FIELDS: Callable[[ReplicaDocument], tuple[Any, ...]] = attrgetter(
    *(f"shape.{name}" for name in ("gpu", "tp", "pp", "ep", "dp", "batch", "locality", "partition", "weights_dtype", "kv_dtype"))
)


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """One replica of the plan: where it is written (`deployment` and `number` count from 0), its document, and its rows in the rank columns."""

    deployment: int
    number: int
    name: str
    document: ReplicaDocument
    first: int
    end: int


@dataclass(frozen=True)
class ReplicaColumns:
    """Every replica of the plan, in document order, as columns of equal length n.

    `deployment` indexes the plan's deployments, `first` and `size` give its rows in the rank columns. `shape` numbers the distinct shapes in order of
    first appearance, the first replica of each in `shape_rows`. `figures` [n, FIGURES] holds its numbers, NaN where a price is left out
    (`missing` [n, 2] tells those from prices that are really no number).
    """

    deployment: IntArray
    first: IntArray
    size: IntArray
    shape: IntArray
    shape_rows: IntArray
    figures: FloatArray
    missing: BoolArray

    def figure(self, name: str) -> FloatArray:
        """One column of the figures."""
        column: FloatArray = self.figures[:, COLUMN[name]]
        return column


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


class ReplicaRows(Sequence[ReplicaRow]):
    """All replicas of a plan in document order, each with the span of its ranks, made when asked for.

    Only documents and offsets are kept: a plan of 100,000 replicas makes no objects of its own here.
    """

    def __init__(self, plan: PlanDocument) -> None:
        self.documents: list[ReplicaDocument] = [replica for deployment in plan.deployments for replica in deployment.replicas]
        self.names = [deployment.name for deployment in plan.deployments]
        counts = [len(deployment.replicas) for deployment in plan.deployments]
        self.deployment: IntArray = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        self.before: IntArray = np.cumsum([0, *counts], dtype=np.int64)
        sizes = np.fromiter((len(replica.ranks) for replica in self.documents), dtype=np.int64, count=len(self.documents))
        self.first: IntArray = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)))

    def __len__(self) -> int:
        return len(self.documents)

    @overload
    def __getitem__(self, index: SupportsIndex) -> ReplicaRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ReplicaRow]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> ReplicaRow | Sequence[ReplicaRow]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        deployment = int(self.deployment[row])
        number = row - int(self.before[deployment])
        return ReplicaRow(deployment, number, self.names[deployment], self.documents[row], int(self.first[row]), int(self.first[row + 1]))


def finite_or_huge(value: float | None) -> float:
    """Float of a figure: NaN for none, infinite for an integer that no float holds."""
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.inf


def replica_columns(rows: ReplicaRows) -> ReplicaColumns:
    """Columns of all replicas."""
    read = attrgetter(*FIGURES)
    documents, count = rows.documents, len(rows)
    missing = np.zeros((count, 2), dtype=np.bool_)
    try:
        figures = np.fromiter(chain.from_iterable(map(read, documents)), dtype=np.float64, count=count * len(FIGURES))
    except (TypeError, OverflowError):
        figures = np.full(1, np.nan)
    # Some releases of numpy read None as NaN, others refuse it.
    if np.isnan(figures).any():
        raw = list(map(read, documents))
        missing = np.array([[figure is None for figure in line[-2:]] for line in raw], dtype=np.bool_).reshape(-1, 2)
        figures = np.array([[finite_or_huge(figure) for figure in line] for line in raw], dtype=np.float64)
    codes: dict[tuple[Any, ...], int] = {}
    shape = np.fromiter((codes.setdefault(fields, len(codes)) for fields in map(SHAPE_FIELDS, documents)), dtype=np.int64, count=count)
    return ReplicaColumns(
        deployment=rows.deployment,
        first=rows.first[:-1],
        size=np.diff(rows.first),
        shape=shape,
        shape_rows=np.unique(shape, return_index=True)[1].astype(np.int64),
        figures=figures.reshape(-1, len(FIGURES)),
        missing=missing,
    )


def rank_columns(rows: ReplicaRows, node_codes: Mapping[str, int], domain_codes: Mapping[str, int]) -> RankColumns:
    """Columns of all ranks of `rows`; names of nodes and domains become codes once."""
    ranks = list(chain.from_iterable(replica.ranks for replica in rows.documents))
    count = len(ranks)
    try:
        numbers = np.fromiter(chain.from_iterable(map(INTEGERS, ranks)), dtype=np.int64, count=6 * count)
    except OverflowError:
        clipped = [max(-WILD, min(WILD, number)) for number in chain.from_iterable(map(INTEGERS, ranks))]
        numbers = np.array(clipped, dtype=np.int64)
    node = np.fromiter((node_codes.get(name, -1) for name in map(NODE, ranks)), dtype=np.int64, count=count)
    domain = np.fromiter((domain_codes.get(name, -1) for name in map(DOMAIN, ranks)), dtype=np.int64, count=count)
    replica = np.repeat(np.arange(len(rows), dtype=np.int64), np.diff(rows.first))
    rank, stage, tp_rank, dp_rank, ep_rank, gpu = numbers.reshape(-1, 6).T
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


def uniform(values: IntArray, starts: IntArray) -> BoolArray:
    """Whether each run of rows has one single value; `starts` are the first rows of the runs."""
    result: BoolArray = np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts)
    return result


def alike(figures: FloatArray) -> tuple[IntArray, IntArray]:
    """Distinct lines of a table: the first row of each, and which of them every row equals [n].

    Replicas of one shape nearly always claim the same figures, which is seen without sorting.
    """
    if len(figures) and bool((figures == figures[0]).all()):
        return np.zeros(1, dtype=np.int64), np.zeros(len(figures), dtype=np.int64)
    # A NaN differs from everything, itself included: as a fixed number it can be sorted, and reported once.
    _, first, inverse = np.unique(np.nan_to_num(figures, nan=-math.pi), axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.reshape(-1).astype(np.int64)

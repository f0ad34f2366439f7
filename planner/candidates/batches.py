"""The largest batch of every shape that still meets its targets, searched for all shapes at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.cost.setting import FloatArray, IntArray, ShapeArrays, TimesTable
from planner.cost.tails import tails

Evaluate = Callable[[ShapeArrays], TimesTable]

FAN = 12  # batches tried at once: two or three rounds find any batch up to a thousand


@dataclass(frozen=True)
class Targets:
    """What a step must not exceed [s] and the least efficiency [share of 1]; infinite and 0 where nothing is asked.

    `percentile` [per cent] is the one the times are judged at, None = the mean; `jitter` holds the sigmas of the log-normal factors on compute and on
    communication, `seed` that of their draws (`cost.tails`).
    """

    tpot: float = float("inf")
    ttft: float = float("inf")
    min_efficiency: float = 0.0
    percentile: float | None = None
    jitter: tuple[float, float] = (0.0, 0.0)
    seed: int = 0

    @property
    def words(self) -> str:
        """How a judged time is called before its name: nothing for the mean, `P99 of ` for a percentile."""
        return "" if self.percentile is None else f"P{self.percentile:g} of "

    def judged(self, times: TimesTable) -> tuple[FloatArray, FloatArray]:
        """TPOT and TTFT [n] as they are compared with the targets: the means, or the percentile asked for."""
        if self.percentile is None:
            return times.tpot, times.ttft
        found = tails(times, *self.jitter, seed=self.seed, percentiles=(self.percentile,))
        return found.tpot[:, 0], found.ttft[:, 0]

    def latency_met(self, times: TimesTable) -> NDArray[np.bool_]:
        """Shapes whose TPOT and TTFT are within the targets, as booleans [n]."""
        tpot, ttft = self.judged(times)
        return (tpot <= self.tpot) & (ttft <= self.ttft)


def with_batch(shapes: ShapeArrays, batch: IntArray) -> ShapeArrays:
    """The same shapes at another batch [n]."""
    return replace(shapes, batch=batch)


def select(shapes: ShapeArrays, rows: NDArray[np.bool_] | IntArray) -> ShapeArrays:
    """Rows of a table of shapes."""
    return ShapeArrays(**{name: getattr(shapes, name)[rows] for name in ShapeArrays.__dataclass_fields__})


def largest_batch(evaluate: Evaluate, shapes: ShapeArrays, most: IntArray, targets: Targets) -> IntArray:
    """Largest batch from 1 to `most` [n] at which each shape meets its latency targets; 0 where not even one sequence does.

    Step times never fall when the batch grows, so the interval can be cut: each round tries `FAN` batches of every open shape in one
    evaluation, whose cost hardly depends on the number of rows, and keeps the part between the last that meets and the first that misses.
    """
    low = np.zeros_like(most)
    high = most.copy()
    while (rows := np.flatnonzero(low < high)).size:
        width = high[rows] - low[rows]
        parts = np.arange(1, FAN + 1)
        trial = low[rows, None] + np.maximum(-(-width[:, None] * parts // FAN), 1)
        # Where fewer batches than `FAN` are left, some are named twice: a batch that repeats the one before it is not evaluated again.
        fresh = np.ones(trial.shape, dtype=bool)
        np.not_equal(trial[:, 1:], trial[:, :-1], out=fresh[:, 1:])
        asked = with_batch(select(shapes, np.repeat(rows, np.count_nonzero(fresh, axis=1))), trial[fresh])
        met = targets.latency_met(evaluate(asked))[np.cumsum(fresh).reshape(trial.shape) - 1]
        first_miss = np.where(met.all(axis=1), FAN, np.argmin(met, axis=1))
        index = np.arange(rows.size)
        below = np.where(first_miss > 0, trial[index, np.maximum(first_miss - 1, 0)], low[rows])
        above = np.where(first_miss < FAN, trial[index, np.minimum(first_miss, FAN - 1)] - 1, below)
        low[rows], high[rows] = below, np.maximum(above, below)
    return low


def efficient_batch(evaluate: Evaluate, shapes: ShapeArrays, batch: IntArray, targets: Targets) -> IntArray:
    """Lower each batch [n] to the largest power-of-two fraction of it that reaches the least efficiency; 0 where none does.

    Efficiency is not monotone in the batch (communication volume grows with it, start-up does not), so several are tried.
    """
    if targets.min_efficiency <= 0:
        return batch
    answer = np.zeros_like(batch)
    trial = batch.copy()
    while (rows := np.flatnonzero((answer == 0) & (trial > 0))).size:
        times = evaluate(with_batch(select(shapes, rows), trial[rows]))
        met = times.efficiency >= targets.min_efficiency
        answer[rows[met]] = trial[rows[met]]
        trial[rows[~met]] //= 2
    return answer


def as_columns(rows: list[tuple[int, ...]]) -> list[IntArray]:
    """Turn a list of integer tuples into int64 columns."""
    table = np.asarray(rows, dtype=np.int64)
    return [table[:, column] for column in range(table.shape[1])]


def relative_excess(value: FloatArray, limit: float) -> FloatArray:
    """How far `value` [n] lies above `limit`, relative to it; 0 below."""
    return np.maximum(value / limit - 1.0, 0.0)

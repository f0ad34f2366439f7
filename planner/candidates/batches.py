"""The largest batch of every shape that still meets its targets, searched for all shapes at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.candidates.asking import Answer, Asked, Search
from planner.cost.setting import FloatArray, IntArray, TimesTable
from planner.cost.tails import tails

Judge = Callable[[IntArray, IntArray], TimesTable]
"""Times of rows of a table at a batch each."""

AROUND = (-3, -1, 0, 1, 3)  # batches tried about the one that is guessed to be the largest, in steps of
NARROWING = 32  # so small a part of the interval
GUESSES = 2  # rounds of guessing; where the times jump, the interval is cut evenly after that
FAN = 16  # into so many parts


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

    def latency_used(self, times: TimesTable) -> FloatArray:
        """How much of the tighter of the two latency targets each shape takes [n]: up to 1 where it meets both, above where it misses one."""
        tpot, ttft = self.judged(times)
        met = (tpot <= self.tpot) & (ttft <= self.ttft)
        with np.errstate(invalid="ignore"):
            used = np.fmax(tpot / self.tpot, ttft / self.ttft)
        return np.where(met, np.fmin(used, 1.0), np.where(used > 1.0, used, np.inf))

    @property
    def latency_asked(self) -> bool:
        """Whether any latency is asked for at all."""
        return math.isfinite(self.tpot) or math.isfinite(self.ttft)


def largest_batch(judge: Judge, most: IntArray, targets: Targets) -> IntArray:
    """Largest batch from 1 to `most` [n] at which each row meets its latency targets, as `largest_batches` finds it."""
    return _judged(largest_batches(np.arange(most.size, dtype=np.int64), most, targets), judge)


def efficient_batch(judge: Judge, batch: IntArray, targets: Targets) -> IntArray:
    """Lower each batch [n] until it reaches the least efficiency, as `efficient_batches` does."""
    return _judged(efficient_batches(np.arange(batch.size, dtype=np.int64), batch, targets), judge)


def _judged(search: Search[Answer], judge: Judge) -> Answer:
    """Run one search alone."""
    try:
        asked = next(search)
        while True:
            asked = search.send(judge(asked.rows, asked.batch))
    except StopIteration as end:
        found: Answer = end.value
        return found


def largest_batches(chosen: IntArray, most: IntArray, targets: Targets) -> Search[IntArray]:
    """Search the largest batch from 1 to `most` [n] at which each of the `chosen` rows [n] meets its latency targets; 0 where not even one sequence does.

    Step times never fall when the batch grows, so that the answer lies between a batch that meets them and one that misses. One sequence and the most are tried
    first, with two between them; then, since times grow almost linearly, batches around the one where the line between both ends crosses the target. What is tried of a row depends on
    that row only, not on those asked about beside it.
    """
    if not targets.latency_asked:
        return np.maximum(most, 0)
    low, high = np.zeros_like(most), np.maximum(most, 0) + 1
    below, above = np.zeros(most.shape), np.full(most.shape, np.inf)
    number = 0
    while (rows := np.flatnonzero(high - low > 1)).size:
        trial = _trials(number, low[rows], high[rows], below[rows], above[rows])
        # Where fewer batches are left than are tried, some are named twice: a batch that repeats the one before it is not evaluated again.
        fresh = np.ones(trial.shape, dtype=bool)
        np.not_equal(trial[:, 1:], trial[:, :-1], out=fresh[:, 1:])
        asked = Asked(chosen[np.repeat(rows, np.count_nonzero(fresh, axis=1))], trial[fresh], against_one=False)
        used = targets.latency_used((yield asked))
        used = used[np.cumsum(fresh).reshape(trial.shape) - 1]
        missed = used > 1.0
        first = np.where(missed.any(axis=1), np.argmax(missed, axis=1), trial.shape[1])
        met, lost = np.flatnonzero(first > 0), np.flatnonzero(first < trial.shape[1])
        low[rows[met]], below[rows[met]] = trial[met, first[met] - 1], used[met, first[met] - 1]
        high[rows[lost]], above[rows[lost]] = trial[lost, first[lost]], used[lost, first[lost]]
        number += 1
    return low


def _trials(number: int, low: IntArray, high: IntArray, below: FloatArray, above: FloatArray) -> IntArray:
    """Batches to try in one round, rising from left to right [n, k], between `low` that meets the targets and `high` that misses them.

    `below` and `above` are how much of the targets the ends take.
    """
    width = high - low
    if not number:
        trial = np.stack((np.ones_like(low), width // 8, width // 3, high - 1), axis=1)
    elif number > GUESSES:
        trial = low[:, None] + width[:, None] * np.arange(1, FAN) // FAN
    else:
        reach = np.where(np.isfinite(above), (1.0 - below) / (np.where(np.isfinite(above), above, 2.0) - below), 0.5)
        guess = low + (reach * width).astype(np.int64)
        trial = guess[:, None] + np.maximum(width // NARROWING, 1)[:, None] * np.array(AROUND)
    return np.asarray(np.clip(trial, (low + 1)[:, None], (high - 1)[:, None]), dtype=np.int64)


def efficient_batches(chosen: IntArray, batch: IntArray, targets: Targets) -> Search[IntArray]:
    """Lower each batch [n] of the `chosen` rows [n] to the largest power-of-two fraction of it that reaches the least efficiency; 0 where none does.

    Efficiency is not monotone in the batch (communication volume grows with it, start-up does not), so several are tried.
    """
    if targets.min_efficiency <= 0:
        return batch
    answer = np.zeros_like(batch)
    trial = batch.copy()
    while (rows := np.flatnonzero((answer == 0) & (trial > 0))).size:
        told = yield Asked(chosen[rows], trial[rows], against_one=True)
        met = told.efficiency >= targets.min_efficiency
        answer[rows[met]] = trial[rows[met]]
        trial[rows[~met]] //= 2
    return answer


def as_columns(rows: list[tuple[int, ...]]) -> list[IntArray]:
    """Turn a list of integer tuples into int64 columns."""
    table = np.asarray(rows, dtype=np.int64)
    return [table[:, column] for column in range(table.shape[1])]

"""Straight pieces through times over message sizes, by dynamic programming."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

PENALTY = 0.12  # what one more piece must save in summed relative error
LEAST_POINTS = 2
MOST_POINTS_OF_KNOTS = 8  # shorter series are joined point to point


@dataclass(frozen=True)
class Piece:
    """start [s] + slope [s/B] x message over the measured sizes first..last [B]."""

    first: float
    last: float
    start: float
    slope: float


def hops(operation: str, ranks: int, form: str) -> float:
    """Hops of an operation by its textbook form."""
    if operation == "all_reduce":
        return 2 * np.ceil(np.log2(ranks)) if form == "tree" else 2 * (ranks - 1)
    return ranks - 1


def volume_share(operation: str, ranks: int) -> float:
    """Bytes one rank sends per byte of message."""
    return (2 if operation == "all_reduce" else 1) * (ranks - 1) / ranks


def _least_absolute(sizes: np.ndarray, seconds: np.ndarray, least_start: float) -> tuple[float, float, float]:
    """Line with slope >= 0 and a start of at least `least_start` of least summed relative error; an optimum passes through two points or is flat."""
    left, right = np.triu_indices(len(sizes), 1)
    slope = (seconds[right] - seconds[left]) / (sizes[right] - sizes[left])
    start = seconds[left] - slope * sizes[left]
    proportional = seconds / sizes
    slopes = np.concatenate([slope, np.zeros(len(sizes)), proportional])
    starts = np.concatenate([start, seconds, np.zeros(len(sizes))])
    keep = (slopes >= 0) & (starts >= least_start)
    slopes, starts = slopes[keep], starts[keep]
    cost = np.sum(np.abs(starts[:, None] + slopes[:, None] * sizes - seconds) / seconds, axis=1)
    best = int(np.argmin(cost))
    return float(cost[best]), float(starts[best]), float(slopes[best])


def pieces_of(sizes: tuple[float, ...], seconds: tuple[float, ...]) -> list[Piece]:
    """Pieces of least relative error plus the penalty for each; few points are joined one to the next."""
    count = len(sizes)
    if count < MOST_POINTS_OF_KNOTS:
        joined = []
        for (size, time), (next_size, next_time) in pairwise(zip(sizes, seconds, strict=True)):
            slope = max(0.0, (next_time - time) / (next_size - size))
            start = max(0.0, time - slope * size)
            last = next_size if next_size == sizes[-1] else size
            joined.append(Piece(size, last, start, slope))
        return joined
    x, y = np.array(sizes), np.array(seconds)

    # An empty message takes about as long as the smallest measured one; later pieces may start anywhere above 0.
    smallest = 0.9 * float(y[:3].min())

    @cache
    def cost(first: int, end: int) -> tuple[float, float, float]:
        return _least_absolute(x[first:end], y[first:end], smallest if first == 0 else 0.0)

    best: list[tuple[float, int]] = [(0.0, 0)] + [(np.inf, 0)] * count
    for end in range(LEAST_POINTS, count + 1):
        best[end] = min(
            (best[first][0] + cost(first, end)[0] + PENALTY, first) for first in range(end - LEAST_POINTS + 1) if best[first][0] < np.inf
        )
    found: list[Piece] = []
    end = count
    while end > 0:
        first = best[end][1]
        _, start, slope = cost(first, end)
        found.append(Piece(sizes[first], sizes[end - 1], start, slope))
        end = first
    return found[::-1]

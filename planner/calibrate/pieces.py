"""Straight pieces through times over message sizes: three ranges of size at least, each in as many pieces as pay for themselves."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.catalog.collectives import Segment

FloatArray = NDArray[np.float64]

# Protocols and algorithms change about here: messages up to the first bound, up to the second, and larger ones [B].
BOUNDS: Final = (64.0 * 1024.0, 8.0 * 2**20)
LEAST_POINTS: Final = 2
# What one more piece must save in summed relative error.
PENALTY: Final = 0.1
# Sizes of one range that pieces are sought among; a log with a row for every byte is thinned to them.
MOST_POINTS: Final = 60


@dataclass(frozen=True, slots=True)
class Piece:
    """Start [s] and slope [s/B] of a line over the measured sizes first..last [B]."""

    first: float
    last: float
    start: float
    slope: float


def straight_pieces(sizes: FloatArray, seconds: FloatArray) -> tuple[Piece, ...]:
    """Pieces through times [s] at rising sizes [B], one for each range at least; a range with one size joins its neighbour.

    In each range the number of pieces is found by dynamic programming under the summed relative error plus a penalty for each piece.
    """
    found: list[Piece] = []
    edges = [
        0,
        *(int(np.searchsorted(sizes, bound, side="right")) for bound in BOUNDS[:1]),
        int(np.searchsorted(sizes, BOUNDS[1])),
        len(sizes),
    ]
    ranges = [(first, end) for first, end in pairwise(edges) if end > first]
    for first, end in _joined(ranges):
        found.extend(_range_pieces(sizes[first:end], seconds[first:end]))
    return tuple(found)


def segments(pieces: tuple[Piece, ...], volume: float, algorithm: str) -> tuple[Segment, ...]:
    """Pieces as the collectives' tables hold them; `volume` is what one rank sends per byte of message."""
    ends = [*(piece.first for piece in pieces[1:]), None]
    return tuple(
        Segment(end, piece.last, piece.start, volume / piece.slope if piece.slope > 0.0 else None, algorithm)
        for piece, end in zip(pieces, ends, strict=True)
    )


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of two sizes at least, each too short one joined to the one before (the first to the one after)."""
    joined: list[tuple[int, int]] = []
    for first, end in ranges:
        if joined and (end - first < LEAST_POINTS or joined[-1][1] - joined[-1][0] < LEAST_POINTS):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((first, end))
    return joined


def _range_pieces(sizes: FloatArray, seconds: FloatArray) -> list[Piece]:
    if len(sizes) > MOST_POINTS:
        kept = np.unique(np.linspace(0, len(sizes) - 1, MOST_POINTS).round().astype(np.int64))
        sizes, seconds = sizes[kept], seconds[kept]
    count = len(sizes)
    if count == 1:
        return [Piece(float(sizes[0]), float(sizes[0]), float(seconds[0]), 0.0)]
    lines = {
        (first, end): straight_line(sizes[first:end], seconds[first:end])
        for first in range(count - LEAST_POINTS + 1)
        for end in range(first + LEAST_POINTS, count + 1)
    }
    best: list[tuple[float, int]] = [(0.0, 0)] + [(float("inf"), 0)] * count
    for end in range(LEAST_POINTS, count + 1):
        options = [
            (best[first][0] + lines[first, end][0] + PENALTY, first)
            for first in range(end - LEAST_POINTS + 1)
            if best[first][0] < float("inf")
        ]
        best[end] = min(options)
    found: list[Piece] = []
    end = count
    while end > 0:
        first = best[end][1]
        _, start, slope = lines[first, end]
        found.append(Piece(float(sizes[first]), float(sizes[end - 1]), start, slope))
        end = first
    return found[::-1]


def straight_line(sizes: FloatArray, seconds: FloatArray) -> tuple[float, float, float]:
    """Summed relative error, start [s] and slope [s/B] of the line, neither below 0, of least summed relative error.

    An optimum passes through two of the points, is flat at one, or is proportional through one.
    """
    left, right = np.triu_indices(len(sizes), 1)
    slope = (seconds[right] - seconds[left]) / (sizes[right] - sizes[left])
    slopes = np.concatenate([slope, np.zeros(len(sizes)), seconds / sizes])
    starts = np.concatenate([seconds[left] - slope * sizes[left], seconds, np.zeros(len(sizes))])
    usable = (slopes >= 0.0) & (starts >= 0.0)
    slopes, starts = slopes[usable], starts[usable]
    cost = np.sum(np.abs(starts[:, None] + slopes[:, None] * sizes - seconds) / seconds, axis=1)
    at = int(np.argmin(cost))
    return float(cost[at]), float(starts[at]), float(slopes[at])

"""Calibrated constants of collective operations: who was measured, and how time grows with size and ranks.

A `CollectiveSeries` belongs to one fabric (GPUs joined by one kind of link), one library in one version and one operation. At every number of ranks
that was measured the time is a few straight pieces over the message size, start + volume / bandwidth, where volume is what the textbook form sends per rank.
Between measured ranks times are interpolated on logarithmic scales; beyond them the textbook hops carry the start on. `benchmarks/fit_collectives.py` writes the data file.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DATA_FILE: Final = Path(__file__).parent / "data" / "collectives.json"
OPERATIONS: Final[tuple[str, ...]] = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


@dataclass(frozen=True, slots=True)
class Segment:
    """One straight piece: start [s] + volume / bandwidth for messages below `below` [B], None = without end.

    `last` [B] is the largest measured size in the piece, `bandwidth` [B/s] None where the time is flat, `algorithm` what the library ran there.
    """

    below: float | None
    last: float
    start: float
    bandwidth: float | None
    algorithm: str


class _Curve(NamedTuple):
    """Pieces at one number of ranks as columns; `floors` and `caps` keep the time from falling with size while the algorithm stays."""

    ends: FloatArray
    starts: FloatArray
    slopes: FloatArray
    floors: FloatArray
    caps: FloatArray
    algorithms: NDArray[np.str_]


def _curve(pieces: tuple[Segment, ...], volume: float) -> _Curve:
    ends = np.array([piece.below for piece in pieces[:-1]], dtype=np.float64)
    starts = np.array([piece.start for piece in pieces])
    slopes = np.array([0.0 if piece.bandwidth is None else volume / piece.bandwidth for piece in pieces])
    floors = np.zeros(len(pieces))
    for index in range(1, len(pieces)):
        before = pieces[index - 1]
        # Another algorithm may well be faster at a larger size; within one, a larger message is never sooner through.
        if before.algorithm == pieces[index].algorithm:
            floors[index] = max(floors[index - 1], starts[index - 1] + slopes[index - 1] * before.last)
    caps = np.full(len(pieces), np.inf)
    for index in range(len(pieces) - 1):
        if pieces[index].algorithm == pieces[index + 1].algorithm:
            caps[index] = max(floors[index + 1], starts[index + 1] + slopes[index + 1] * ends[index])
    return _Curve(ends, starts, slopes, floors, caps, np.array([piece.algorithm for piece in pieces]))


@dataclass(frozen=True)
class CollectiveSeries:
    """Constants of one operation of one library version on one fabric.

    `form` is ring or tree, the hops that fit the starts: start ~ `c0` + `alpha` x hops [s]. `legal_ranks` lists the group sizes the library's own
    kernels accept, empty = any. `segments` maps measured ranks to pieces in order of size. `ranks_inside` is how many of the ranks shared a scale-up scope
    where the series was measured over several scopes, 1 otherwise.
    """

    fabric: str
    library: str
    version: str
    operation: str
    form: str
    c0: float
    alpha: float
    legal_ranks: tuple[int, ...]
    basis: str
    source: str
    segments: Mapping[int, tuple[Segment, ...]]
    ranks_inside: int = 1

    def hops(self, ranks: int) -> float:
        """Hops of the operation among `ranks` by the series' form."""
        if self.operation == "all_reduce":
            return float(2 * np.ceil(np.log2(ranks))) if self.form == "tree" else 2.0 * (ranks - 1)
        return float(ranks - 1)

    def volume(self, ranks: int) -> float:
        """Bytes one rank sends per byte of message."""
        return (2.0 if self.operation == "all_reduce" else 1.0) * (ranks - 1) / ranks

    def time(self, ranks: int, message_bytes: FloatArray) -> tuple[FloatArray, NDArray[np.str_]]:
        """Time [s] and algorithm of messages [B] (array) among `ranks`; 0 for one rank.

        Measured ranks use their pieces. Ranks between two measured ones take the straight line between both on logarithmic scales; more ranks than any measured
        take the largest measured time at equal volume per rank, plus alpha for every further hop; fewer than any measured the smallest, less those hops.
        """
        if ranks <= 1:
            return np.zeros(message_bytes.shape), np.full(message_bytes.shape, "none")
        measured = sorted(self.segments)
        at = bisect_right(measured, ranks)
        if at and measured[at - 1] == ranks:
            return self._measured(ranks, message_bytes)
        if 0 < at < len(measured):
            lower, upper = measured[at - 1], measured[at]
            low, _ = self._measured(lower, message_bytes)
            high, names = self._measured(upper, message_bytes)
            weight = math.log(ranks / lower) / math.log(upper / lower)
            return low ** (1.0 - weight) * high**weight, names
        nearest = measured[0] if at == 0 else measured[-1]
        same_volume = message_bytes * (self.volume(ranks) / self.volume(nearest))
        times, names = self._measured(nearest, same_volume)
        further = self.alpha * (self.hops(ranks) - self.hops(nearest))
        return np.maximum(times + further, 0.25 * times), names

    def _measured(self, ranks: int, message_bytes: FloatArray) -> tuple[FloatArray, NDArray[np.str_]]:
        curve = self._curves[ranks]
        index = np.searchsorted(curve.ends, message_bytes, side="right")
        times = np.clip(curve.starts[index] + curve.slopes[index] * message_bytes, curve.floors[index], curve.caps[index])
        return times, curve.algorithms[index]

    @cached_property
    def _curves(self) -> dict[int, _Curve]:
        return {ranks: _curve(pieces, self.volume(ranks)) for ranks, pieces in self.segments.items()}

    def as_row(self) -> dict[str, Any]:
        """Row of the data file."""
        return {
            "fabric": self.fabric,
            "library": self.library,
            "version": self.version,
            "operation": self.operation,
            "form": self.form,
            "c0": self.c0,
            "alpha": self.alpha,
            "legal_ranks": list(self.legal_ranks),
            "basis": self.basis,
            "source": self.source,
            "segments": {
                str(ranks): [[piece.below, piece.last, piece.start, piece.bandwidth, piece.algorithm] for piece in pieces]
                for ranks, pieces in self.segments.items()
            },
        }


def _series(row: Mapping[str, Any]) -> CollectiveSeries:
    segments = {int(ranks): tuple(Segment(*piece) for piece in pieces) for ranks, pieces in row["segments"].items()}
    fields = {name: value for name, value in row.items() if name not in {"segments", "legal_ranks"}}
    return CollectiveSeries(**fields, legal_ranks=tuple(row["legal_ranks"]), segments=segments)


@cache
def _by_fabric() -> dict[tuple[str, str, str], tuple[CollectiveSeries, ...]]:
    found: dict[tuple[str, str, str], tuple[CollectiveSeries, ...]] = {}
    for row in json.loads(DATA_FILE.read_text(encoding="utf-8")):
        series = _series(row)
        key = (series.fabric, series.library, series.operation)
        found[key] = (*found.get(key, ()), series)
    return {key: tuple(sorted(_sloped(group), key=lambda series: version_key(series.version))) for key, group in found.items()}


def _sloped(group: tuple[CollectiveSeries, ...]) -> Iterator[CollectiveSeries]:
    """Series that end in a flat piece go on, from their largest measured size, at the bandwidth of the one measured farthest.

    A series of small sizes alone knows only its start-up; taken as it stands it would send gigabytes in no time.
    """
    last = [pieces[-1] for series in group for pieces in series.segments.values() if pieces[-1].bandwidth is not None]
    if not last:
        yield from group
        return
    farthest = max(last, key=lambda piece: piece.last).bandwidth
    assert farthest is not None
    for series in group:
        segments = {}
        for ranks, pieces in series.segments.items():
            *before, end = pieces
            if end.bandwidth is None:
                beyond = max(end.start - series.volume(ranks) * end.last / farthest, 0.0)
                segments[ranks] = (*before, replace(end, below=end.last), replace(end, start=beyond, bandwidth=farthest))
            else:
                segments[ranks] = pieces
        yield replace(series, segments=segments)


def version_key(version: str) -> tuple[tuple[int, str], ...]:
    """Order versions by their numbers: 0.5.9 before 0.5.10, 1.3.0rc10 before 1.3.0rc20."""
    parts = re.findall(r"\d+|[a-z]+", version.lower())
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def collective_series() -> tuple[CollectiveSeries, ...]:
    """All calibrated series."""
    return tuple(series for group in _by_fabric().values() for series in group)


def find_series(fabric: str, library: str, operation: str, version: str | None = None) -> CollectiveSeries | None:
    """Series of a library on a fabric, None when it was not measured there.

    With a `version`, the newest measured one that is not newer, or the oldest measured; without, the newest.
    """
    group = _by_fabric().get((fabric, library, operation), ())
    if not group:
        return None
    if version is None:
        return group[-1]
    older = [series for series in group if version_key(series.version) <= version_key(version)]
    return older[-1] if older else group[0]

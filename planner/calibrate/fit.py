"""Alpha, beta and pieces of one benchmark run, with the error on sizes that were held out.

    T(m) = hops x alpha + volume(m) / B

The start, hops x alpha, is the median time of messages up to 4 KiB less what their bytes take. B comes from the largest messages: of each size volume / (T - start),
averaged from the largest size down for as long as sizes agree within their noise. Neither is read off the printed mean over all sizes, which mixes both. What lies
between is not used for either, so the line's error there says how straight the curve is; the pieces are judged on sizes left out of their fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.calibrate.identity import Identity
from planner.calibrate.pieces import Piece, segments, straight_pieces
from planner.catalog.collectives import CollectiveSeries, Segment

FloatArray = NDArray[np.float64]

SMALL: Final = 4096.0
MIDDLE: Final = 64.0 * 1024.0
LARGE: Final = 8.0 * 2**20
LEAST_TIMES: Final = 3
# Sizes agree when their bandwidths lie this close, or within so many standard deviations of the noise between repeated times.
AGREEMENT: Final = 0.03
DEVIATIONS: Final = 2.5
LEAST_HELD_OUT: Final = 6
LEAST_LARGE: Final = 3


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors on `sizes` sizes, as shares of the measured times."""

    median: float
    largest: float
    sizes: int


@dataclass(frozen=True)
class Straightness:
    """How far times over size follow alpha + beta m: R^2 over the sizes, and the power of m by which T - start grows (1 = straight)."""

    r_squared: float
    exponent: float | None
    sizes: int


@dataclass(frozen=True)
class CollectiveFit:
    """What one run says about a link.

    `start` [s] is the time of an empty message, `alpha` [s] its share of one hop of the ring, `bandwidth` [B/s] what one rank gets; None where the
    sizes do not tell. `pieces` hold the whole curve. `between` is the line's error on the sizes used for neither, `held_out` the pieces' on sizes left out of them.
    """

    file: str
    identity: Identity
    library: str
    version: str
    sizes: tuple[float, ...]
    seconds: tuple[float, ...]
    start: float | None
    bandwidth: float | None
    pieces: tuple[Piece, ...]
    between: Errors | None
    held_out: Errors | None
    all_sizes: Straightness | None
    large_sizes: Straightness | None
    learnt: tuple[str, ...]
    assumed: tuple[str, ...]
    refused: tuple[str, ...]

    @property
    def hops(self) -> float:
        """Hops of the operation's ring."""
        return ring_hops(self.identity.operation, self.identity.ranks)

    @property
    def volume(self) -> float:
        """Bytes one rank sends per byte of message."""
        return volume_share(self.identity.operation, self.identity.ranks)

    @property
    def alpha(self) -> float | None:
        """Start of one hop [s]."""
        return None if self.start is None else self.start / self.hops

    def segments(self) -> tuple[Segment, ...]:
        """Pieces as the collectives' tables hold them."""
        return segments(self.pieces, self.volume, self.library)


def ring_hops(operation: str, ranks: int) -> float:
    """Hops of the textbook ring: 2 (n - 1) for an all-reduce, n - 1 for its halves and all-to-all, 1 for a send."""
    if operation == "send_receive":
        return 1.0
    return (2.0 if operation == "all_reduce" else 1.0) * (ranks - 1)


def volume_share(operation: str, ranks: int) -> float:
    """Bytes one rank sends per byte of message: 2 (n - 1) / n, (n - 1) / n, or all of it."""
    if operation == "send_receive":
        return 1.0
    return (2.0 if operation == "all_reduce" else 1.0) * (ranks - 1) / ranks


def fit_times(
    file: str, identity: Identity, times: Sequence[tuple[float, float]], library: str = "nccl", version: str = ""
) -> CollectiveFit:
    """Fit the times of one operation.

    Parameters
    ----------
    file
        Where they come from.
    identity
        What was timed.
    times
        Pairs of message size [B] and time [s], several for one size where it was timed several times.
    library, version
        What ran.
    """
    learnt, assumed, refused = list(identity.learnt), list(identity.assumed), list[str]()
    pairs = np.array(sorted(times), dtype=np.float64)
    raw_sizes, raw_seconds = pairs[:, 0], pairs[:, 1]
    sizes, seconds = medians(raw_sizes, raw_seconds)
    volume = volume_share(identity.operation, identity.ranks)
    start, bandwidth = _start_and_bandwidth(raw_sizes, raw_seconds, volume, learnt, assumed, refused)
    pieces = straight_pieces(sizes, seconds)
    held_out = _held_out(sizes, seconds)
    if held_out is None:
        refused.append(f"error on sizes held out: {len(sizes)} sizes are too few to leave any out")
    return CollectiveFit(
        file=file,
        identity=identity,
        library=library,
        version=version,
        sizes=tuple(map(float, sizes)),
        seconds=tuple(map(float, seconds)),
        start=start,
        bandwidth=bandwidth,
        pieces=pieces,
        between=_between(sizes, seconds, start, bandwidth, volume),
        held_out=held_out,
        all_sizes=straightness(sizes, seconds, start),
        large_sizes=straightness(sizes[sizes >= LARGE], seconds[sizes >= LARGE], start),
        learnt=tuple(learnt),
        assumed=tuple(assumed),
        refused=tuple(refused),
    )


def medians(sizes: FloatArray, seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct sizes, rising, with the median time of each."""
    distinct, first = np.unique(sizes, return_index=True)
    parts = np.split(seconds, first[1:])
    return distinct, np.array([float(np.median(part)) for part in parts])


def _start_and_bandwidth(
    sizes: FloatArray, seconds: FloatArray, volume: float, learnt: list[str], assumed: list[str], refused: list[str]
) -> tuple[float | None, float | None]:
    """Start [s] from the small messages and bandwidth [B/s] from the large ones; each corrects the other's times once."""
    bound = SMALL if np.count_nonzero(sizes <= SMALL) >= LEAST_TIMES else MIDDLE
    small = sizes <= bound
    large = sizes >= LARGE
    has_start, has_bandwidth = np.count_nonzero(small) >= LEAST_TIMES, len(np.unique(sizes[large])) >= 2
    start = float(np.median(seconds[small])) if has_start else 0.0
    bandwidth, used = np.inf, 0
    for _ in range(4):
        if has_bandwidth:
            bandwidth, used = _largest(sizes[large], seconds[large], start, volume)
        if has_start:
            start = max(float(np.median(seconds[small] - volume * sizes[small] / bandwidth)), 0.0)
    if has_start:
        learnt.append(f"start: median of {np.count_nonzero(small)} times up to {bound / 1024:.0f} KiB")
        if bound > SMALL:
            assumed.append("start: there are too few sizes up to 4 KiB; those up to 64 KiB stand in")
        if not has_bandwidth and bound > SMALL:
            assumed.append("start: holds what the bytes of those sizes take")
    else:
        refused.append(f"alpha: the smallest size is {_size(sizes[0])}, it is read off sizes up to 4 KiB (64 KiB at most)")
    if has_bandwidth:
        learnt.append(f"bandwidth: the largest {used} sizes, which agree within their noise")
        if not has_start:
            assumed.append("bandwidth: the start is taken as 0")
    else:
        refused.append(f"beta: the largest size is {_size(sizes[-1])}, two from 8 MiB on are needed")
    return start if has_start else None, float(bandwidth) if has_bandwidth else None


def _largest(sizes: FloatArray, seconds: FloatArray, start: float, volume: float) -> tuple[float, int]:
    """Bandwidth [B/s] that the largest sizes agree on, and how many they are (two at least)."""
    moved = np.maximum(seconds - start, 0.05 * seconds)
    rates = np.log(volume * sizes / moved)
    distinct = np.unique(sizes)[::-1]
    by_size = [rates[sizes == size] for size in distinct]
    spreads = np.concatenate([np.abs(part - np.median(part)) for part in by_size if len(part) > 1] or [np.zeros(1)])
    within = max(AGREEMENT, DEVIATIONS * 1.4826 * float(np.median(spreads)))
    count = 2
    while count < len(distinct) and abs(float(np.median(by_size[count])) - float(np.median(np.concatenate(by_size[:count])))) <= within:
        count += 1
    return float(np.exp(_midmean(np.concatenate(by_size[:count])))), count


def _midmean(values: FloatArray) -> float:
    """Mean of the middle half of the values; of all where they are few."""
    ordered = np.sort(values)
    cut = len(ordered) // 4
    return float(np.mean(ordered[cut : len(ordered) - cut]))


def _between(sizes: FloatArray, seconds: FloatArray, start: float | None, bandwidth: float | None, volume: float) -> Errors | None:
    """Errors of the line on the sizes that neither constant was read off."""
    if start is None or bandwidth is None:
        return None
    middle = (sizes > SMALL) & (sizes < LARGE)
    return _errors(start + volume * sizes[middle] / bandwidth, seconds[middle])


def _errors(predicted: FloatArray, measured: FloatArray) -> Errors | None:
    if not len(measured):
        return None
    shares = np.abs(predicted / measured - 1.0)
    return Errors(float(np.median(shares)), float(shares.max()), len(measured))


def _held_out(sizes: FloatArray, seconds: FloatArray) -> Errors | None:
    """Errors of pieces on every inner size, each time fitted without it and every other one."""
    if len(sizes) < LEAST_HELD_OUT:
        return None
    predicted: list[float] = []
    measured: list[float] = []
    inner = np.arange(len(sizes)) % 2 == 1
    for left_out in (inner, ~inner):
        kept = ~left_out
        kept[[0, -1]] = True
        asked = ~kept
        series = one_group("", "all_gather", 2, segments(straight_pieces(sizes[kept], seconds[kept]), 0.5, ""))
        predicted += list(series.time(2, sizes[asked])[0])
        measured += list(seconds[asked])
    return _errors(np.array(predicted), np.array(measured))


def one_group(link: str, operation: str, ranks: int, pieces: tuple[Segment, ...]) -> CollectiveSeries:
    """Series that holds times among one number of ranks."""
    return CollectiveSeries(link, "nccl", "", operation, "ring", 0.0, 0.0, (), "measured", "", {ranks: pieces})


def straightness(sizes: FloatArray, seconds: FloatArray, start: float | None) -> Straightness | None:
    """R^2 of the least-squares line through times over sizes, and the power by which T - start grows; None with fewer than three sizes."""
    if len(sizes) < LEAST_LARGE:
        return None
    slope, intercept = np.polyfit(sizes / sizes.max(), seconds, 1)
    residual = seconds - (intercept + slope * sizes / sizes.max())
    total = float(np.sum((seconds - seconds.mean()) ** 2))
    r_squared = 1.0 - float(np.sum(residual**2)) / total if total > 0.0 else 0.0
    moved = seconds - (start or 0.0)
    grown = moved > 0.5 * seconds
    exponent = float(np.polyfit(np.log(sizes[grown]), np.log(moved[grown]), 1)[0]) if np.count_nonzero(grown) >= 2 else None
    return Straightness(r_squared, exponent, len(sizes))


def _size(size: float) -> str:
    for unit, scale in (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10)):
        if size >= scale:
            return f"{size / scale:g} {unit}"
    return f"{size:g} B"

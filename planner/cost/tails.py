"""Percentiles of TPOT and TTFT: log-normal jitter drawn with a seed.

A step's compute is multiplied by one log-normal factor and its whole communication by another: slow links and stragglers last longer than one
collective, so drawing every collective apart would average the tail away. Both factors have mean 1, so the mean stays the model's own.
A request's TPOT is that of its worst steps as a user feels them: one draw stands for a whole request.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.cost.setting import FloatArray, TimesTable

PERCENTILES = (50.0, 90.0, 99.0)


@dataclass(frozen=True)
class Tails:
    """Percentiles [s] of TPOT and TTFT, shape [n, len(percentiles)]."""

    percentiles: tuple[float, ...]
    tpot: FloatArray
    ttft: FloatArray

    def tpot_at(self, percentile: float) -> FloatArray:
        """TPOT at one of the percentiles [s], shape [n]."""
        return self.tpot[:, self.percentiles.index(percentile)]

    def ttft_at(self, percentile: float) -> FloatArray:
        """TTFT at one of the percentiles [s], shape [n]."""
        return self.ttft[:, self.percentiles.index(percentile)]


def tails(
    times: TimesTable,
    jitter_compute: float,
    jitter_exchange: float,
    *,
    seed: int = 0,
    draws: int = 2000,
    percentiles: tuple[float, ...] = PERCENTILES,
) -> Tails:
    """Draw the percentiles of TPOT and TTFT of every shape.

    Parameters
    ----------
    times
        Mean times of n shapes.
    jitter_compute, jitter_exchange
        Sigma of the logarithm of the factor on compute and on communication.
    seed, draws
        Seed and number of draws; all shapes share the draws, so comparing two shapes is free of sampling noise.
    percentiles
        In per cent.

    Notes
    -----
    factor = exp(sigma z - sigma^2 / 2), z ~ N(0, 1). The wait in the queue is exponential around its mean, as the M/M/1 wait is; an infinite mean stays infinite.
    """
    generator = np.random.default_rng(seed)
    normal = generator.standard_normal((2, draws))
    compute_factor = np.exp(jitter_compute * normal[0] - jitter_compute**2 / 2.0)
    exchange_factor = np.exp(jitter_exchange * normal[1] - jitter_exchange**2 / 2.0)
    wait_factor = generator.exponential(size=draws)
    step = [times.compute, times.tp_comm + times.pp_comm + times.ep_comm, times.fixed]
    tpot = _percentiles(step[0], step[1], step[2], compute_factor, exchange_factor, None, percentiles)
    zeros = np.zeros_like(times.ttft)
    finite = np.where(np.isfinite(times.queueing), times.queueing, 0.0)
    ttft = _percentiles(
        times.prefill_compute, times.prefill_comm, zeros, compute_factor, exchange_factor, (finite, wait_factor), percentiles
    )
    ttft[~np.isfinite(times.queueing)] = np.inf
    return Tails(percentiles, tpot, ttft)


def _percentiles(
    compute: FloatArray,
    exchange: FloatArray,
    fixed: FloatArray,
    compute_factor: FloatArray,
    exchange_factor: FloatArray,
    wait: tuple[FloatArray, FloatArray] | None,
    percentiles: tuple[float, ...],
) -> FloatArray:
    """Percentiles per shape, in blocks of shapes so that a million of them do not take a million x draws numbers at once."""
    block = 512
    result = np.empty((compute.size, len(percentiles)))
    for start in range(0, compute.size, block):
        rows = slice(start, start + block)
        drawn = compute[rows, None] * compute_factor + exchange[rows, None] * exchange_factor + fixed[rows, None]
        if wait is not None:
            drawn = drawn + wait[0][rows, None] * wait[1]
        result[rows] = np.percentile(drawn, percentiles, axis=1).T
    return result

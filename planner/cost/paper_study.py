"""The arithmetic of the communication cost study: its ring, its fitted layer time, tails, and how many GPUs hold a model."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.catalog.links import Interconnect
from planner.cost.collectives import Numbers
from planner.cost.paper import bubble

FloatArray = NDArray[np.float64]

LAYER_EXPONENT: Final = 0.7232  # fitted there on an RTX 2070, mean absolute error 20.2 %
RESERVE: Final = 1.6e9  # bytes a GPU needs besides weights so that the study's table of minimum GPUs comes out
DEGREES: Final = (1, 2, 4, 8, 16)


def ring_time(ranks: Numbers, message: float, interconnect: Interconnect) -> FloatArray:
    """Ring all-reduce, 2 (n - 1)(alpha + beta m / n) [s]."""
    count = np.asarray(ranks, dtype=np.float64)
    return np.asarray(2.0 * (count - 1.0) * (interconnect.alpha + message / count / interconnect.bandwidth), dtype=np.float64)


def layer_time(coefficient: float, hidden: float, batch: float, sequence: float, exponent: float = LAYER_EXPONENT) -> float:
    """Time of one layer on one GPU, a (d^2 B S)^b [s]."""
    return float(coefficient * (hidden**2 * batch * sequence) ** exponent)


def tensor_parallel_step(ranks: Numbers, single: float, layers: int, message: float, interconnect: Interconnect) -> FloatArray:
    """Step over n GPUs: the single-GPU time divided by n plus one ring all-reduce a layer [s]."""
    return single / np.asarray(ranks, dtype=np.float64) + layers * ring_time(ranks, message, interconnect)


def pipeline_step(
    stages: int, microbatches: int, single: float, message: float, interconnect: Interconnect, exponent: float = LAYER_EXPONENT
) -> float:
    """Step over P stages and M microbatches, (M + P - 1)(T(1) M^-b / P + alpha + beta m / M) [s]: a microbatch runs less efficiently than a whole batch."""
    stage = single / stages * math.pow(microbatches, -exponent)
    hop = interconnect.alpha + message / microbatches / interconnect.bandwidth
    return float(microbatches + stages - 1) * (stage + hop)


def efficiency(ranks: Numbers, single: float, step: Numbers) -> FloatArray:
    """T(1) / (n T(n))."""
    return np.asarray(single / (np.asarray(ranks, dtype=np.float64) * step), dtype=np.float64)


def tail_ratio(compute_over_communication: float, sigma: float = 0.12, quantile: float = 0.99) -> float:
    """Quantile over median of a step whose communication carries log-normal jitter, (r + e^(z sigma)) / (r + 1); r = compute / communication."""
    factor = math.exp(NormalDist().inv_cdf(quantile) * sigma)
    return (compute_over_communication + factor) / (compute_over_communication + 1.0)


def minimum_gpus(weight_bytes: float, gpu_memory: float, reserve: float = RESERVE, degrees: tuple[int, ...] = DEGREES) -> int | None:
    """Smallest degree at which a rank's weights and a fixed reserve fit into one GPU's memory; None when none does."""
    return next((degree for degree in degrees if weight_bytes / degree + reserve <= gpu_memory), None)


def pipeline_bubbles() -> dict[str, float]:
    """The three bubbles the study prints: two stages with 4 microbatches, four with 4, eight with 8."""
    return {f"pp{stages}_m{count}": float(bubble(stages, count)) for stages, count in ((2, 4), (4, 4), (8, 8))}

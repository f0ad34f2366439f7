"""The arithmetic people do on paper: the alpha-beta calculator notes and the crossover batch notes, formula by formula.

Nothing is measured here and nothing is added. `cost.hockney` evaluates shapes with the same forms; docs/physics-hockney.md names where the sources print
figures that their own formulas do not give.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.cost.collectives import Numbers, all_reduce_volume, ring_hops

FloatArray = NDArray[np.float64]

ONE_SHOT_START: Final = 8e-6  # s per all-reduce of a custom kernel, alpha-beta calculator notes
ALL_REDUCES_PER_LAYER: Final = 2  # after attention and after the feed-forward part
OVERHEAD_LIMIT: Final = 0.30  # above it the notes say: reconsider
BF16: Final = 2.0


class CommunicationTime(NamedTuple):
    """Hops, volume per rank [B], and the two terms of alpha x hops + beta x volume [s]."""

    hops: float
    volume: float
    latency: float
    transfer: float

    @property
    def total(self) -> float:
        """Latency plus transfer [s]."""
        return self.latency + self.transfer


def message_bytes(batch: float, step_tokens: float, hidden: int, element_bytes: float = BF16) -> float:
    """Message of one all-reduce or hop, B S d b [B]; S = 1 in decode, the prompt in prefill."""
    return batch * step_tokens * hidden * element_bytes


def tensor_parallel_time(layers: int, ranks: int, message: float, alpha: float, bandwidth: float, algorithm: str) -> CommunicationTime:
    """Communication of one step under tensor parallelism.

    Parameters
    ----------
    algorithm : str
        ring (2 (N - 1) hops), tree (2 log2 N), or one_shot: one 8 us start per all-reduce, counted as one hop. All move the ring's 2 (N - 1) / N m.
    """
    count = ALL_REDUCES_PER_LAYER * layers
    volume = count * float(all_reduce_volume(ranks, message))
    if algorithm == "one_shot":
        hops = float(count if ranks > 1 else 0)
        return CommunicationTime(hops, volume, hops * ONE_SHOT_START, volume / bandwidth)
    per_call = {"ring": 2.0 * (ranks - 1), "tree": 2.0 * math.log2(ranks)}[algorithm]
    return CommunicationTime(count * per_call, volume, count * per_call * alpha, volume / bandwidth)


def half_ring_across_time(layers: int, ranks: int, message: float, alpha: float, bandwidth: float) -> CommunicationTime:
    """Tensor parallelism over two nodes as the notes count it: half of the ring's hops and bytes cross the network, the other half is free.

    In a ring over 2 x 8 GPUs only 2 of the 16 links cross; the assumption is the source's and lives in the `hockney` profile alone.
    """
    count = ALL_REDUCES_PER_LAYER * layers
    hops = count * float(ring_hops(ranks)) / 2.0
    volume = count * float(all_reduce_volume(ranks, message))
    return CommunicationTime(hops, volume, hops * alpha, volume / 2.0 / bandwidth)


def pipeline_time(stages: int, message: float, alpha: float, bandwidth: float) -> CommunicationTime:
    """Sends between pipeline stages, P - 1 hops and (P - 1) B S d b bytes."""
    return CommunicationTime(stages - 1.0, (stages - 1.0) * message, (stages - 1.0) * alpha, (stages - 1.0) * message / bandwidth)


def expert_volume(
    moe_layers: int, batch: float, step_tokens: float, experts_per_token: int, hidden: int, element_bytes: float = BF16
) -> float:
    """Volume of expert parallelism, 2 L_moe B S k d b [B], without the (n - 1) / n of tokens that stay."""
    return 2.0 * moe_layers * experts_per_token * message_bytes(batch, step_tokens, hidden, element_bytes)


def weight_read_time(weight_bytes: float, ranks: float, memory_bandwidth: float) -> float:
    """Time of a decode step's compute, W / (N BW) [s]: reading the weights once."""
    return weight_bytes / (ranks * memory_bandwidth)


def prefill_compute_time(parameters: float, tokens: float, ranks: int, achieved_flops: float) -> float:
    """Time of a prefill's compute, 2 P S / (N F) [s]."""
    return 2.0 * parameters * tokens / (ranks * achieved_flops)


def step_time(
    ranks: Numbers, weight_bytes: float, memory_bandwidth: float, alpha: float, layers: int, calls_per_layer: int = ALL_REDUCES_PER_LAYER
) -> FloatArray:
    """Decode step over N ranks by weights and tree latency alone, W / (N BW) + alpha c L 2 log2 N [s]."""
    count = np.asarray(ranks, dtype=np.float64)
    return np.asarray(weight_bytes / (count * memory_bandwidth) + alpha * calls_per_layer * layers * 2.0 * np.log2(count), dtype=np.float64)


def speedup(ranks: Numbers, weight_bytes: float, memory_bandwidth: float, alpha: float, layers: int) -> FloatArray:
    """T(1) / T(N) of `step_time`."""
    return np.asarray(
        step_time(1.0, weight_bytes, memory_bandwidth, alpha, layers) / step_time(ranks, weight_bytes, memory_bandwidth, alpha, layers)
    )


def efficiency(ranks: Numbers, weight_bytes: float, memory_bandwidth: float, alpha: float, layers: int) -> FloatArray:
    """T(1) / (N T(N)) of `step_time`."""
    return np.asarray(speedup(ranks, weight_bytes, memory_bandwidth, alpha, layers) / np.asarray(ranks, dtype=np.float64))


def time_optimal_ranks(
    weight_bytes: float, memory_bandwidth: float, alpha: float, layers: int, calls_per_layer: int = ALL_REDUCES_PER_LAYER
) -> float:
    """Degree at which `step_time` is least, W ln 2 / (2 alpha c L BW), as a real number."""
    return weight_bytes * math.log(2.0) / (2.0 * alpha * calls_per_layer * layers * memory_bandwidth)


def cost_optimal_ranks(threshold: float, weight_bytes: float, memory_bandwidth: float, alpha: float, layers: int, most: int = 1024) -> int:
    """Largest power of two, up to `most`, whose efficiency is still at or above the threshold."""
    degrees = 2 ** np.arange(int(math.log2(most)) + 1)
    kept = degrees[efficiency(degrees, weight_bytes, memory_bandwidth, alpha, layers) >= threshold]
    return int(kept[-1]) if kept.size else 1


def overhead(communication: float, compute: float) -> float:
    """Communication over compute; above 0.30 the notes say to reconsider."""
    return communication / compute


def bubble(stages: Numbers, microbatches: Numbers, chunks: Numbers = 1.0) -> FloatArray:
    """Idle share of a pipeline, (P - 1) / (v M + P - 1).

    v = 1 is GPipe; plain 1F1B has the same bubble (it saves memory, not time); interleaving v chunks of layers on each stage divides it by about v.
    Serving runs forward only, so there is no backward pass to interleave with.
    """
    waiting = np.asarray(stages, dtype=np.float64) - 1.0
    return np.asarray(waiting / (np.asarray(chunks, dtype=np.float64) * microbatches + waiting), dtype=np.float64)


# ---------------------------------------------------------------- the batch at which communication matters


def layer_parameters(hidden: int, intermediate: int, *, kv_share: float = 1.0) -> int:
    """Parameters of one dense gated layer, (2 + 2 kv_share) d^2 + 3 d f; kv_share = kv heads / query heads, 1 without GQA."""
    return round((2.0 + 2.0 * kv_share) * hidden * hidden) + 3 * hidden * intermediate


def crossover_batch(parameters_per_layer: float, hidden: int, link_bandwidth: Numbers, memory_bandwidth: float) -> FloatArray:
    """Batch at which an all-reduce takes as long as reading a layer, in the crossover notes' convention: P BW_link / (2 d BW_hbm).

    One all-reduce a layer of 4 B d bytes per rank (the limit of many ranks in bf16), weights not divided by tensor parallelism, no latency.
    """
    return np.asarray(
        parameters_per_layer * np.asarray(link_bandwidth, dtype=np.float64) / (2.0 * hidden * memory_bandwidth), dtype=np.float64
    )


def crossover_batch_full(
    parameters_per_layer: float,
    hidden: int,
    ranks: int,
    link_bandwidth: float,
    memory_bandwidth: float,
    alpha: float,
    *,
    weight_bytes: float = BF16,
    element_bytes: float = BF16,
    hops: float | None = None,
) -> float:
    """Batch at which communication takes as long as reading a layer's weights, in the full convention.

    Two all-reduces a layer of 2 (n - 1) / n B d b bytes, weights divided by tensor parallelism, `hops` of alpha each (the ring's by default): the B that solves

        2 (hops alpha + 2 (n - 1) / n B d b / BW_link) = P b_w / (n BW_hbm)

    0 where latency alone already takes longer; infinite for one rank.
    """
    if ranks <= 1:
        return math.inf
    count = float(ring_hops(ranks)) if hops is None else hops
    left = parameters_per_layer * weight_bytes / (ranks * memory_bandwidth) - ALL_REDUCES_PER_LAYER * count * alpha
    per_sequence = ALL_REDUCES_PER_LAYER * float(all_reduce_volume(ranks, hidden * element_bytes)) / link_bandwidth
    return max(left, 0.0) / per_sequence


def communication_per_token(batch: Numbers, hidden: int, layers: int, link_bandwidth: float) -> FloatArray:
    """Communication of one decode step in the crossover notes' convention, 4 B d L / BW_link [s]."""
    return np.asarray(4.0 * np.asarray(batch, dtype=np.float64) * hidden * layers / link_bandwidth, dtype=np.float64)

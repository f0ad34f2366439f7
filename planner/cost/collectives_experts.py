"""Dispatch and combine of a mixture-of-experts layer, split into what stays inside a scale-up scope and what crosses NICs.

    time = start(scopes) + max(bytes inside / (share x link), bytes across / NICs of one GPU)

Bytes of one rank with T tokens, k experts a token, s scopes of n_in ranks, a token copy of b bytes:

============== ============================================ =========================================
kernel         across                                       inside
============== ============================================ =========================================
low latency    T k b (s - 1) / s, once per expert           T k b (n_in - 1) / (s n_in)
throughput     T b (s - 1)(1 - (1 - 1/s)^k), once per scope T b (n - 1)(1 - (1 - 1/n)^k) (n = all ranks)
============== ============================================ =========================================

Constants are those of `catalog.expert_kernels`: low latency starts at 12 us inside a node and 22-31 us over 2 to 8; on H100 it moves 215-260 GB/s inside
and 46.5 GB/s a NIC across. Over nodes two publications of the throughput kernel differ: deepseek-ai/DeepEP docs/legacy.md prints 43-51 GB/s a NIC with experts limited to four
groups, the tables of ai-dynamo/aiconfigurator fall from 46 GB/s on 2 nodes to 22 on 8. The latter are followed, as most models do not limit groups.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.catalog.expert_kernels import expert_kernel
from planner.cost.collectives import Numbers
from planner.cost.collectives_calibrated import collective_time
from planner.cost.collectives_hierarchical import hierarchical_time
from planner.cost.collectives_network import achieved_bandwidth
from planner.topology.paths import LinkPath

FloatArray = NDArray[np.float64]

FP8_COPY: Final = 1.0 + 4.0 / 128.0  # bytes an element with one fp32 scale for 128
BF16_COPY: Final = 2.0


class ExpertExchange(NamedTuple):
    """Seconds of dispatch and of combine (arrays) and the kernel's name."""

    dispatch: FloatArray
    combine: FloatArray
    kernel: str


def expert_exchange_time(
    inner: LinkPath,
    outer: LinkPath | None,
    engine: str,
    ranks: int,
    scopes: int,
    tokens_per_rank: Numbers,
    hidden: int,
    experts_per_token: int,
    experts: int,
    *,
    kernel: str = "low_latency",
    dispatch_copy: float = FP8_COPY,
    combine_copy: float = BF16_COPY,
    gpu: str | None = None,
) -> ExpertExchange:
    """Time of sending tokens to their experts and of bringing the results back, one layer [s].

    Parameters
    ----------
    inner, outer : LinkPath
        What joins the ranks of one scope, and one rank's NIC path (None when `scopes` is 1).
    ranks, scopes : int
        Ranks of the expert group and the scale-up scopes they span evenly.
    tokens_per_rank : float or array
        Tokens each rank holds before dispatch.
    kernel : str
        low_latency (decode), throughput (prefill) or collective (a plain all-to-all, the only one without NVLink).
    dispatch_copy, combine_copy : float
        Bytes per element of a token on the way out and back [B]; FP8 with scales and bf16 by default.
    """
    tokens = np.asarray(tokens_per_rank, dtype=np.float64)
    if ranks <= 1:
        return ExpertExchange(np.zeros(tokens.shape), np.zeros(tokens.shape), "none")
    copies = {"dispatch": hidden * dispatch_copy, "combine": hidden * combine_copy}
    if kernel == "collective" or inner.link.kind != "nvlink":
        plain = {
            part: _plain(inner, outer, engine, ranks, scopes, tokens * min(experts_per_token, ranks) * size, gpu)
            for part, size in copies.items()
        }
        return ExpertExchange(plain["dispatch"], plain["combine"], "nccl-all-to-all")
    times = {}
    for part, size in copies.items():
        constants = expert_kernel(kernel, part, inner.link.bandwidth.value)
        inside, across = _bytes(kernel, tokens, float(experts_per_token), ranks, scopes, size)
        start = constants.start + constants.per_expert * experts
        moved = inside / (constants.share * inner.bandwidth)
        if scopes > 1 and outer is not None:
            start += constants.leaving + constants.per_doubling * float(np.log2(scopes))
            moved = np.maximum(moved, across / (achieved_bandwidth(outer) * _reached_share(kernel, scopes)))
        times[part] = start + moved
    return ExpertExchange(times["dispatch"], times["combine"], f"deepep-{kernel.replace('_', '-')}")


def _reached_share(kernel: str, scopes: int) -> float:
    """Share of the NICs' achieved bandwidth: the throughput kernel loses half of it from 2 to 8 scopes and no more after."""
    if kernel == "low_latency":
        return 1.0
    return max(0.5, math.sqrt(2.0 / scopes))


def _bytes(kernel: str, tokens: FloatArray, chosen: float, ranks: int, scopes: int, copy: float) -> tuple[FloatArray, FloatArray]:
    inside_ranks = ranks / scopes
    if kernel == "low_latency":
        sent = tokens * chosen * copy
        return sent * (inside_ranks - 1.0) / ranks, sent * (scopes - 1.0) / scopes
    remote = (scopes - 1.0) * (1.0 - (1.0 - 1.0 / scopes) ** chosen)
    reached = (ranks - 1.0) * (1.0 - (1.0 - 1.0 / ranks) ** chosen)
    return tokens * copy * reached, tokens * copy * remote


def _plain(
    inner: LinkPath, outer: LinkPath | None, engine: str, ranks: int, scopes: int, message_bytes: FloatArray, gpu: str | None
) -> FloatArray:
    if scopes > 1 and outer is not None:
        return hierarchical_time("all_to_all", inner, outer, engine, ranks // scopes, scopes, message_bytes, gpu=gpu)[0]
    return collective_time("all_to_all", inner, engine, ranks, message_bytes, gpu=gpu)[0]

"""Collectives between ranks that meet over NICs, one rank on each rail.

    start = hops x (alpha - launch) x protocol(m)        time = start + volume / (share of the NICs x achieved)

`alpha` is the link's measured send, which holds one kernel launch; `protocol` rises from 1 to 1.8 between 256 B and 8 KiB, where NCCL leaves its
low-latency protocol. Both are read off all-reduce over 2 x 8 H100 on AWS p5 (aws-samples nccl-tests output) less what one node alone takes: 49 us at 8 B, 88-92 us from
8 KiB a rail on, then 46 GB/s a rail.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.cost.collectives import all_reduce_volume, ring_hops, shard_volume, tree_hops
from planner.topology.paths import LinkPath

FloatArray = NDArray[np.float64]

LAUNCH: Final = 5e-6  # a send between two H100 of one node, microsoft/vidur @7d475133
PROTOCOL_RISE: Final = 0.8
PROTOCOL_FIRST: Final = 256.0
PROTOCOL_DOUBLINGS: Final = 5.0


def achieved_bandwidth(path: LinkPath) -> float:
    """What one GPU really gets through its share of the NICs [B/s]."""
    return path.bandwidth * path.link.calibrated_bandwidth.value / path.link.bandwidth.value


def hop_time(path: LinkPath, message_bytes: FloatArray) -> FloatArray:
    """Time of one hop of a collective [s] by the size on the rail [B]."""
    alpha = max(path.link.calibrated_alpha.value - LAUNCH, 0.5 * path.link.calibrated_alpha.value)
    doublings = np.log2(np.maximum(message_bytes, PROTOCOL_FIRST) / PROTOCOL_FIRST)
    return np.asarray(alpha * (1.0 + PROTOCOL_RISE * np.minimum(doublings / PROTOCOL_DOUBLINGS, 1.0)), dtype=np.float64)


def network_parts(operation: str, path: LinkPath, ranks: int, message_bytes: FloatArray) -> tuple[FloatArray, FloatArray, str]:
    """Start [s], transfer [s] and form of a collective among `ranks` rails' peers; the tree where it has fewer hops."""
    if operation == "all_reduce":
        ring, tree = float(ring_hops(ranks)), float(tree_hops(ranks))
        hops, form = (ring, "ring") if ring <= tree else (tree, "tree")
        volume = all_reduce_volume(ranks, message_bytes)
    else:
        hops, form = ranks - 1.0, "ring"
        volume = shard_volume(ranks, message_bytes)
    if operation == "all_to_all":
        # The messages to all peers are posted at once; only their set-up adds up.
        hops, form = 1.0 + np.log2(ranks), "direct"
    return hops * hop_time(path, message_bytes), volume / achieved_bandwidth(path), form


def network_time(operation: str, path: LinkPath, ranks: int, message_bytes: FloatArray) -> tuple[FloatArray, NDArray[np.str_]]:
    """Time [s] of a collective whose ranks all sit in different scopes, and the algorithm."""
    start, transfer, form = network_parts(operation, path, ranks, message_bytes)
    return start + transfer, np.full(message_bytes.shape, f"nccl-{form}-network")

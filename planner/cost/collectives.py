"""Textbook times of collective operations: alpha x hops + volume / bandwidth (Hockney 1994; Thakur, Rabenseifner and Gropp 2005).

Every function takes arrays (or numbers) that broadcast together and returns seconds: `ranks` in the group, `message_bytes` [B], `alpha` [s] per hop,
`bandwidth` [B/s] in one direction per rank. One rank costs nothing; any number of ranks is legal.

================== ====================== ==================== =================================================
operation          hops                   volume per rank      message is
================== ====================== ==================== =================================================
ring all-reduce    2 (n - 1)              2 (n - 1) / n m      the buffer every rank holds
tree all-reduce    2 ceil(log2 n)         2 (n - 1) / n m      the same
one-shot           a flat start           (n - 1) m            the same; every rank reads all others
two-shot           a flat start           2 (n - 1) / n m      the same; reduce-scatter and all-gather in one kernel
reduce-scatter     n - 1                  (n - 1) / n m        the whole buffer, of which each rank keeps 1 / n
all-gather         n - 1                  (n - 1) / n m        the whole gathered buffer
all-to-all         n - 1                  (n - 1) / n m        what one rank holds for all others and itself
point to point     1                      m                    what is sent
================== ====================== ==================== =================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Numbers = float | NDArray[np.float64] | NDArray[np.int64]


def ring_hops(ranks: Numbers) -> FloatArray:
    """Hops of a ring all-reduce, 2 (n - 1)."""
    return 2.0 * (np.asarray(ranks, dtype=np.float64) - 1.0)


def tree_hops(ranks: Numbers) -> FloatArray:
    """Hops of a tree all-reduce up and down, 2 ceil(log2 n); equal to 2 log2 n for powers of two."""
    count = np.asarray(ranks, dtype=np.float64)
    # A power of two must not be pushed to the next integer by the rounding of log2.
    return np.asarray(2.0 * np.ceil(np.log2(count) - 1e-12), dtype=np.float64)


def all_reduce_volume(ranks: Numbers, message_bytes: Numbers) -> FloatArray:
    """Bytes each rank sends in a ring or tree all-reduce, 2 (n - 1) / n m [B]."""
    count = np.asarray(ranks, dtype=np.float64)
    return np.asarray(2.0 * (count - 1.0) / count * np.asarray(message_bytes, dtype=np.float64), dtype=np.float64)


def shard_volume(ranks: Numbers, message_bytes: Numbers) -> FloatArray:
    """Bytes each rank sends in a reduce-scatter, all-gather or all-to-all, (n - 1) / n m [B]."""
    return 0.5 * all_reduce_volume(ranks, message_bytes)


def _only_groups(ranks: Numbers, seconds: FloatArray) -> FloatArray:
    return np.where(np.asarray(ranks) > 1, seconds, 0.0)


def ring_all_reduce(ranks: Numbers, message_bytes: Numbers, alpha: Numbers, bandwidth: Numbers) -> FloatArray:
    """Time of a ring all-reduce, 2 (n - 1) alpha + 2 (n - 1) / n m / B [s]."""
    return _only_groups(ranks, ring_hops(ranks) * alpha + all_reduce_volume(ranks, message_bytes) / bandwidth)


def tree_all_reduce(ranks: Numbers, message_bytes: Numbers, alpha: Numbers, bandwidth: Numbers) -> FloatArray:
    """Time of a tree all-reduce, 2 ceil(log2 n) alpha + 2 (n - 1) / n m / B [s]; the double binary tree of NCCL keeps the ring's volume."""
    return _only_groups(ranks, tree_hops(ranks) * alpha + all_reduce_volume(ranks, message_bytes) / bandwidth)


def one_shot_all_reduce(ranks: Numbers, message_bytes: Numbers, start: Numbers, bandwidth: Numbers) -> FloatArray:
    """Time of a one-shot all-reduce kernel, start + (n - 1) m / B [s]: every rank reads the whole buffer of every other."""
    received = (np.asarray(ranks, dtype=np.float64) - 1.0) * np.asarray(message_bytes, dtype=np.float64)
    return _only_groups(ranks, np.asarray(start + received / bandwidth, dtype=np.float64))


def two_shot_all_reduce(ranks: Numbers, message_bytes: Numbers, start: Numbers, bandwidth: Numbers) -> FloatArray:
    """Time of a two-shot all-reduce kernel, start + 2 (n - 1) / n m / B [s].

    The alpha-beta calculator notes call this form one-shot: 8 us a call and the ring's volume.
    """
    return _only_groups(ranks, np.asarray(start + all_reduce_volume(ranks, message_bytes) / bandwidth, dtype=np.float64))


def reduce_scatter(ranks: Numbers, message_bytes: Numbers, alpha: Numbers, bandwidth: Numbers) -> FloatArray:
    """Time of a ring reduce-scatter of a buffer of m bytes, (n - 1) alpha + (n - 1) / n m / B [s]."""
    return 0.5 * ring_all_reduce(ranks, message_bytes, alpha, bandwidth)


def all_gather(ranks: Numbers, message_bytes: Numbers, alpha: Numbers, bandwidth: Numbers) -> FloatArray:
    """Time of a ring all-gather into a buffer of m bytes, (n - 1) alpha + (n - 1) / n m / B [s]."""
    return 0.5 * ring_all_reduce(ranks, message_bytes, alpha, bandwidth)


def all_to_all(ranks: Numbers, message_bytes: Numbers, alpha: Numbers, bandwidth: Numbers) -> FloatArray:
    """Time of an all-to-all of m bytes a rank, (n - 1) alpha + (n - 1) / n m / B [s]: one message to each peer."""
    return 0.5 * ring_all_reduce(ranks, message_bytes, alpha, bandwidth)


def point_to_point(message_bytes: Numbers, alpha: Numbers, bandwidth: Numbers) -> FloatArray:
    """Time of one send, alpha + m / B [s]."""
    return np.asarray(alpha + np.asarray(message_bytes, dtype=np.float64) / bandwidth, dtype=np.float64)


def hierarchical_all_reduce(
    inner_ranks: Numbers,
    scopes: Numbers,
    message_bytes: Numbers,
    inner: tuple[Numbers, Numbers],
    outer: tuple[Numbers, Numbers],
) -> FloatArray:
    """Time of an all-reduce over `scopes` groups of `inner_ranks`: reduce-scatter inside, all-reduce of m / n_in across on each rail, all-gather inside [s].

    Parameters
    ----------
    inner, outer : tuple
        Alpha [s] and bandwidth [B/s] inside a scope, and across scopes as one rank's share of the NICs.
    """
    shard = np.asarray(message_bytes, dtype=np.float64) / np.asarray(inner_ranks, dtype=np.float64)
    inside = reduce_scatter(inner_ranks, message_bytes, *inner) + all_gather(inner_ranks, message_bytes, *inner)
    return inside + np.minimum(ring_all_reduce(scopes, shard, *outer), tree_all_reduce(scopes, shard, *outer))

"""Collectives over several scale-up scopes: inside each scope, then across on every rail, each level with its own start and bandwidth.

All-reduce: reduce-scatter inside, all-reduce of m / n_in across, all-gather inside. NCCL cuts large messages into chunks and runs both levels at once:

    time = start_in + start_out + max(move_in, move_out) + min(move_in, move_out) / max(1, m / 110 MB)

The chunk size is fitted on all-reduce over 2 x 8 H100 of AWS p5 (aws-samples nccl-tests output: 123 us at 1 MiB, 602 us at 64 MiB, 4.61 ms at 1 GiB, 66.1 ms at
16 GiB). In-node times are never scaled by a ratio of bandwidths, and the whole never costs less than one scope alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.cost.collectives import Numbers
from planner.cost.collectives_calibrated import collective_time, own_series
from planner.cost.collectives_network import network_parts
from planner.topology.paths import LinkPath

FloatArray = NDArray[np.float64]
Named = tuple[FloatArray, NDArray[np.str_]]

CHUNK: Final = 110e6


def hierarchical_all_reduce_time(
    inner: LinkPath,
    outer: LinkPath,
    engine: str,
    ranks_inside: int,
    scopes: int,
    message_bytes: Numbers,
    *,
    gpu: str | None = None,
    version: str | None = None,
) -> Named:
    """Time [s] and algorithm of an all-reduce of m bytes [B] over `scopes` scale-up scopes of `ranks_inside` ranks each.

    `inner` joins the ranks of one scope, `outer` is the NIC path of one rank. With one scope it is the engine's own all-reduce, with one rank inside the network's.
    """
    sizes = np.asarray(message_bytes, dtype=np.float64)
    alone, names = collective_time("all_reduce", inner, engine, ranks_inside, sizes, gpu=gpu, version=version)
    if scopes <= 1:
        return alone, names
    if (measured := _measured("all_reduce", outer, ranks_inside, scopes, sizes)) is not None:
        return measured
    start_out, move_out, form = network_parts("all_reduce", outer, scopes, sizes / ranks_inside)
    start_in, move_in = _inside_all_reduce(inner, ranks_inside, sizes, gpu)
    total = start_in + start_out + _overlapped(move_in, move_out, sizes)
    return np.maximum(total, alone), np.full(sizes.shape, f"hierarchical-{form}")


def hierarchical_time(
    operation: str,
    inner: LinkPath,
    outer: LinkPath,
    engine: str,
    ranks_inside: int,
    scopes: int,
    message_bytes: Numbers,
    *,
    gpu: str | None = None,
) -> Named:
    """Time [s] and algorithm of any collective over several scopes; sizes [B] as in `cost.collectives`.

    All-gather: the rails gather m / n_in across, then every scope gathers m inside; reduce-scatter the other way round. All-to-all: each rank sends the share of
    other scopes, (s - 1) / s m, over its NICs while the share of its own scope, (n_in - 1) / (s n_in) m, stays inside.
    """
    if operation == "all_reduce":
        return hierarchical_all_reduce_time(inner, outer, engine, ranks_inside, scopes, message_bytes, gpu=gpu)
    sizes = np.asarray(message_bytes, dtype=np.float64)
    if scopes <= 1:
        return collective_time(operation, inner, engine, ranks_inside, sizes, gpu=gpu)
    if (measured := _measured(operation, outer, ranks_inside, scopes, sizes)) is not None:
        return measured
    if operation == "all_to_all":
        start_out, move_out, _ = network_parts(operation, outer, scopes, sizes)
        inside, _ = collective_time(operation, inner, engine, ranks_inside, sizes / scopes, gpu=gpu)
        whole, _ = collective_time(operation, inner, engine, ranks_inside, sizes, gpu=gpu)
        total = np.maximum(np.maximum(inside, start_out + move_out), whole)
        return total, np.full(sizes.shape, "hierarchical-direct")
    start_out, move_out, form = network_parts(operation, outer, scopes, sizes / ranks_inside)
    inside, _ = collective_time(operation, inner, engine, ranks_inside, sizes, gpu=gpu)
    start_in, _ = collective_time(operation, inner, engine, ranks_inside, np.zeros(()), gpu=gpu)
    total = start_in + start_out + _overlapped(inside - start_in, move_out, sizes)
    return np.maximum(total, inside), np.full(sizes.shape, f"hierarchical-{form}")


def _measured(operation: str, outer: LinkPath, ranks_inside: int, scopes: int, sizes: FloatArray) -> Named | None:
    """Time and algorithm of a group of exactly this form that somebody timed over this network, None where nobody did."""
    series = own_series(outer.link, "nccl", operation, ranks_inside)
    if series is None or ranks_inside * scopes not in series.segments:
        return None
    times, _ = series.time(ranks_inside * scopes, np.atleast_1d(sizes))
    return times.reshape(sizes.shape), np.full(sizes.shape, "nccl-measured")


def _inside_all_reduce(inner: LinkPath, ranks: int, sizes: FloatArray, gpu: str | None) -> tuple[FloatArray, FloatArray]:
    """Start [s] of reduce-scatter plus all-gather inside a scope, and what the message adds [s]: theirs, or an all-reduce's where switches reduce."""
    nothing = np.zeros(())
    start = sum(collective_time(operation, inner, "nccl", ranks, nothing, gpu=gpu)[0] for operation in ("reduce_scatter", "all_gather"))
    two = sum(collective_time(operation, inner, "nccl", ranks, sizes, gpu=gpu)[0] for operation in ("reduce_scatter", "all_gather"))
    one = (
        collective_time("all_reduce", inner, "nccl", ranks, sizes, gpu=gpu)[0]
        - collective_time("all_reduce", inner, "nccl", ranks, nothing, gpu=gpu)[0]
    )
    start_seconds = np.asarray(start, dtype=np.float64)
    return start_seconds, np.maximum(np.minimum(np.asarray(two) - start_seconds, one), 0.0)


def _overlapped(inside: FloatArray, across: FloatArray, sizes: FloatArray) -> FloatArray:
    chunks = np.maximum(1.0, sizes / CHUNK)
    return np.asarray(np.maximum(inside, across) + np.minimum(inside, across) / chunks, dtype=np.float64)

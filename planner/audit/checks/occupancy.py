"""Each rank has a GPU of its own: it exists, is free, is of the claimed type, and nothing else in the plan uses it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.findings import finding
from planner.audit.sites import FAILED, TAKEN
from planner.audit.spare_gpus import with_spares
from planner.diagnostics import Diagnostic


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every rank, GPU or replica that breaks occupancy."""
    case = with_spares(case)
    yield from _unknown(case)
    yield from _not_free(case)
    yield from _used_twice(case)
    yield from _wrong_type(case)
    yield from _counts(case)


def _unknown(case: Case) -> Iterator[Diagnostic]:
    for position in np.flatnonzero(case.site < 0):
        node = int(case.ranks.node[position])
        name = case.gpu_name(position)
        if node < 0:
            yield finding("NODE_UNKNOWN", case.place(position), f"{name}: the topology has no such node", "name a node of the topology")
        else:
            held = case.sites.gpus_of(node)
            yield finding("GPU_UNKNOWN", case.place(position), f"{name}: the node has {held} GPUs", f"use a GPU from 0 to {held - 1}")


def _not_free(case: Case) -> Iterator[Diagnostic]:
    known = case.site >= 0
    state = np.where(known, case.sites.state[np.where(known, case.site, 0)], 0)
    for value, code, word in ((TAKEN, "GPU_TAKEN", "taken by somebody else"), (FAILED, "GPU_FAILED", "marked failed")):
        for position in np.flatnonzero(state == value):
            yield finding(
                code, case.place(position), f"{case.gpu_name(position)} is {word}", "place the rank on a free GPU, or free this one"
            )


def _used_twice(case: Case) -> Iterator[Diagnostic]:
    known = np.flatnonzero(case.site >= 0)
    uses = np.bincount(case.site[known], minlength=case.sites.count)
    for position in known[uses[case.site[known]] > 1]:
        times = int(uses[case.site[position]])
        yield finding(
            "GPU_USED_TWICE", case.place(position), f"{case.gpu_name(position)} is used {times} times", "give each rank a GPU of its own"
        )


def _wrong_type(case: Case) -> Iterator[Diagnostic]:
    types = {pool.gpu.name: code for code, pool in enumerate(case.fabric.pools)}
    pool_type = np.array([types[pool.gpu.name] for pool in case.fabric.pools], dtype=np.int64)
    of_shape = [types.get(case.rows[row].document.shape.gpu, -1) for row in case.replicas.shape_rows.tolist()]
    claimed = np.array(of_shape, dtype=np.int64)[case.replicas.shape]
    known = np.flatnonzero(case.site >= 0)
    actual = case.sites.pool[case.site[known]]
    for position in known[pool_type[actual] != claimed[case.ranks.replica[known]]]:
        found = case.fabric.pools[int(case.sites.pool[case.site[position]])].gpu.name
        wanted = case.rows[int(case.ranks.replica[position])].document.shape.gpu
        yield finding(
            "GPU_TYPE_MISMATCH",
            case.place(position),
            f"{case.gpu_name(position)} is {found}, the shape is for {wanted}",
            f"place it on {wanted}",
        )
    mixed = known[actual != case.row_pool[case.ranks.replica[known]]]
    for row in np.unique(case.ranks.replica[mixed]):
        names = {case.fabric.pools[int(pool)].gpu.name for pool in np.unique(actual[case.ranks.replica[known] == row])}
        yield finding(
            "HETEROGENEOUS_TP",
            case.row_place(row),
            f"the replica's GPUs are of nodes unlike in type, wiring or price ({', '.join(sorted(names))})",
            "place a replica on nodes of one kind",
        )


def _counts(case: Case) -> Iterator[Diagnostic]:
    tensor, pipeline, _, data = case.degrees.T
    sizes = case.replicas.size
    for index in np.flatnonzero(sizes != tensor * pipeline * data):
        t, p, d = int(tensor[index]), int(pipeline[index]), int(data[index])
        yield finding(
            "GPU_COUNT_MISMATCH",
            case.row_place(index),
            f"{sizes[index]} ranks are placed, TP {t} x DP {d} x PP {p} needs {t * p * d}",
            "place every rank of the shape on exactly one GPU",
        )
    if case.plan.gpus_total != case.sites.count:
        yield finding(
            "GPU_COUNT_MISMATCH", "gpus_total", f"the plan says {case.plan.gpus_total} GPUs, the topology has {case.sites.count}", "recount"
        )

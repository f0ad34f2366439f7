"""Ranks are numbered as the engine numbers them, TP groups stay in one scale-up scope, and nothing is further apart than claimed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.findings import finding
from planner.audit.levels import APART, PlacedLevels, placed_levels
from planner.diagnostics import Diagnostic
from planner.topology.pools import Pool

# Links a user means by "NVLink": direct links between GPUs, whatever the vendor calls them.
DIRECT_LINKS = frozenset({"nvlink", "xgmi", "ici"})


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every rank or replica that is numbered or placed otherwise than it should be."""
    yield from _numbering(case)
    yield from _domain_names(case)
    if case.rows:
        placed = placed_levels(case)
        yield from _scopes(case, placed)
        yield from _claims(case, placed)
        yield from _direct_links(case, placed)


def _numbering(case: Case) -> Iterator[Diagnostic]:
    """Ranks count stage by stage, in a stage dp rank by dp rank, in it tp rank by tp rank; expert ranks are runs of a stage's ranks."""
    ranks = case.ranks
    sane = case.sane
    tensor, _, expert, data = (column[ranks.replica] for column in np.where(sane[:, None], case.degrees, 1).T)
    first = np.array([row.first for row in case.rows], dtype=np.int64)
    number = np.arange(len(ranks.rank)) - first[ranks.replica] if len(case.rows) else ranks.rank
    in_stage = number % (tensor * data)
    together = np.maximum(tensor * data // expert, 1)
    expected = {
        "rank": number,
        "stage": number // (tensor * data),
        "dp_rank": in_stage // tensor,
        "tp_rank": in_stage % tensor,
        "ep_rank": np.where(expert > 1, in_stage // together, 0),
    }
    checked = sane[ranks.replica]
    for name, values in expected.items():
        claimed = getattr(ranks, name)
        for position in np.flatnonzero(checked & (claimed != values)):
            yield finding(
                "RANK_NUMBERING",
                case.place(position),
                f"{case.gpu_name(position)} has {name} {claimed[position]}, its place in the replica makes it {values[position]}",
                "number ranks by stage, then dp rank, then tp rank",
            )


def _domain_names(case: Case) -> Iterator[Diagnostic]:
    known = case.site >= 0
    actual = case.sites.scope[np.where(known, case.site, 0)]
    for position in np.flatnonzero(known & (actual != case.ranks.domain)):
        name = case.sites.scope_names[int(actual[position])]
        yield finding(
            "DOMAIN_MISMATCH",
            case.place(position),
            f"{case.gpu_name(position)} is in {name}, the plan says {case.rank(position).domain}",
            f"write {name}",
        )


def _level_name(pool: Pool, level: int) -> str:
    return pool.levels[level] if level < len(pool.levels) else "no common network"


def _scopes(case: Case, placed: PlacedLevels) -> Iterator[Diagnostic]:
    for index in np.flatnonzero(placed.tp_scopes > 1):
        pool = case.fabric.pools[int(case.row_pool[index])]
        tensor = int(case.degrees[index, 0])
        yield finding(
            "CROSS_NODE_TP",
            case.row_place(index),
            f"a TP group of {tensor} spans {placed.tp_scopes[index]} scale-up scopes (one {pool.scale_up_level} holds {pool.scope_size})",
            f"keep each TP group inside one {pool.scale_up_level}",
        )


def _claims(case: Case, placed: PlacedLevels) -> Iterator[Diagnostic]:
    for index, row in enumerate(case.rows):
        pool = case.fabric.pools[int(case.row_pool[index])] if case.row_pool[index] >= 0 else None
        if pool is None:
            continue
        claimed = row.document.shape.locality
        actual = int(placed.replica[index])
        if claimed not in pool.levels:
            yield finding(
                "LOCALITY_MISMATCH",
                case.row_place(index),
                f"locality {claimed} does not exist on {pool.gpu.name} nodes",
                f"write one of {', '.join(pool.levels)}",
            )
        elif actual > pool.levels.index(claimed):
            name = _level_name(pool, actual)
            yield finding(
                "LOCALITY_MISMATCH",
                case.row_place(index),
                f"the replica is said to sit within one {claimed}, its GPUs are joined only at level {name}",
                f"place it within one {claimed}, or claim {name}",
            )


def _direct_links(case: Case, placed: PlacedLevels) -> Iterator[Diagnostic]:
    for index, row in enumerate(case.rows):
        asked = case.asked.get(row.name)
        if asked is None or not case.problem.deployments[asked].require_nvlink or case.row_pool[index] < 0:
            continue
        pool = case.fabric.pools[int(case.row_pool[index])]
        level = int(placed.tp[index])
        if int(case.degrees[index, 0]) < 2:
            continue
        if level == APART or level >= len(pool.paths) or pool.paths[level].link.kind not in DIRECT_LINKS:
            link = pool.paths[level].link.name if level < len(pool.paths) else "no link"
            yield finding(
                "NVLINK_REQUIRED",
                case.row_place(index),
                f"a TP group of {case.degrees[index, 0]} is joined by {link} at level {_level_name(pool, level)}, NVLink was asked for",
                "keep each TP group on GPUs joined by NVLink",
            )

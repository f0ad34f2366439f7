"""Ranks are numbered as the engine numbers them, TP groups stay in one scale-up scope, and nothing is further apart than claimed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.columns import BoolArray, IntArray
from planner.audit.findings import finding
from planner.audit.spare_gpus import with_spares
from planner.diagnostics import Diagnostic
from planner.topology.pools import Pool

# Links a user means by "NVLink": direct links between GPUs, whatever the vendor calls them.
DIRECT_LINKS = frozenset({"nvlink", "xgmi", "ici"})


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every rank or replica that is numbered or placed otherwise than it should be."""
    case = with_spares(case)
    yield from _numbering(case)
    yield from _domain_names(case)
    yield from _scopes(case)
    yield from _claims(case)
    yield from _direct_links(case)


def _numbering(case: Case) -> Iterator[Diagnostic]:
    """Ranks count stage by stage, in a stage dp rank by dp rank, in it tp rank by tp rank; expert ranks are runs of a stage's ranks."""
    ranks = case.ranks
    sane = case.sane
    tensor, _, expert, data = (column[ranks.replica] for column in np.where(sane[:, None], case.degrees, 1).T)
    number = np.arange(len(ranks.rank)) - case.replicas.first[ranks.replica]
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


def _scopes(case: Case) -> Iterator[Diagnostic]:
    for index in np.flatnonzero(case.placed.tp_scopes > 1):
        pool = case.fabric.pools[int(case.row_pool[index])]
        tensor = int(case.degrees[index, 0])
        yield finding(
            "CROSS_NODE_TP",
            case.row_place(index),
            f"a TP group of {tensor} spans {case.placed.tp_scopes[index]} scale-up scopes (one {pool.scale_up_level} holds {pool.scope_size})",
            f"keep each TP group inside one {pool.scale_up_level}",
        )


def _claims(case: Case) -> Iterator[Diagnostic]:
    for rows in case.groups:
        if case.row_pool[rows[0]] < 0:
            continue
        pool = case.fabric.pools[int(case.row_pool[rows[0]])]
        claimed = case.rows[int(rows[0])].document.shape.locality
        if claimed not in pool.levels:
            message, hint = f"locality {claimed} does not exist on {pool.gpu.name} nodes", f"write one of {', '.join(pool.levels)}"
            for index in rows:
                yield finding("LOCALITY_MISMATCH", case.row_place(index), message, hint)
            continue
        for index in rows[case.placed.replica[rows] > pool.levels.index(claimed)]:
            name = _level_name(pool, int(case.placed.replica[index]))
            yield finding(
                "LOCALITY_MISMATCH",
                case.row_place(index),
                f"the replica is said to sit within one {claimed}, its GPUs are joined only at level {name}",
                f"place it within one {claimed}, or claim {name}",
            )


def _direct_links(case: Case) -> Iterator[Diagnostic]:
    for family in case.families:
        if not family.question.require_nvlink:
            continue
        pool = family.pool
        direct = np.array([path.link.kind in DIRECT_LINKS for path in pool.paths])
        if family.shape.ep > 1:
            apart = ~_joined(direct, case.placed.stage[family.rows]) | (case.placed.stage_scopes[family.rows] > 1)
            for index in family.rows[apart]:
                yield finding(
                    "CROSS_NVLINK_DOMAIN_EP",
                    case.row_place(index),
                    f"an expert group of {family.shape.ep} spans {int(case.placed.stage_scopes[index])} domains, NVLink was asked for",
                    "keep each expert group on GPUs joined by NVLink",
                )
        if family.shape.tp < 2:
            continue
        for index in family.rows[~_joined(direct, case.placed.tp[family.rows])]:
            at = int(case.placed.tp[index])
            link = pool.paths[at].link.name if at < len(pool.paths) else "no link"
            yield finding(
                "NVLINK_REQUIRED",
                case.row_place(index),
                f"a TP group of {family.shape.tp} is joined by {link} at level {_level_name(pool, at)}, NVLink was asked for",
                "keep each TP group on GPUs joined by NVLink",
            )


def _joined(direct: BoolArray, level: IntArray) -> BoolArray:
    """Whether each level is one of direct links; no level is where nothing joins the GPUs."""
    found: BoolArray = (level < len(direct)) & direct[np.minimum(level, len(direct) - 1)]
    return found

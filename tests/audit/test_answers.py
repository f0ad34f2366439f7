"""The planner's own answers to the shipped problems pass, and mutations of them are caught like those of hand-made plans."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from planner.answer.answering import Options, answer
from planner.audit.audit import audit
from planner.audit.columns import RankColumns
from planner.audit.levels import APART, Placement, placed_levels
from planner.audit.sites import Sites
from planner.diagnostics import PlannerError
from planner.plan.outcome import Status
from planner.topology.inventory import GpuId
from tests.audit.mutations import MUTATIONS, mutate
from tests.audit.plans import Case
from tests.audit.scenarios import cases

PROBLEMS = sorted((Path(__file__).parents[2] / "problems").glob("*.yaml"))
OVERRIDES = ((), ("objective=gpus",), ("objective=latency",), ("objective=throughput",), ("profile=hockney",))


def answered(path, overrides=()):
    """A problem with the planner's answer as a case, None where there is no plan, or where its rules and the objective exclude each other."""
    try:
        found = answer(str(path), Options(overrides=overrides))
    except PlannerError as error:
        if {item.code for item in error.diagnostics} == {"RULES_NOT_TOGETHER"}:
            return None
        raise
    if found.plan.status in {Status.INFEASIBLE.value, Status.UNKNOWN.value}:
        return None
    loaded = found.loaded
    return Case(path.stem, loaded.problem, loaded.fabric, loaded.architectures, found.plan, ())


def test_a_shipped_answer_passes_and_its_mutations_do_not():
    case = answered(Path(PROBLEMS[0].parent / "two_node_h100.yaml"))
    assert audit(case.problem, case.fabric, case.architectures, case.plan) == ()
    rng = random.Random(5)
    mutated = {name: plan for name in sorted(MUTATIONS) if (plan := mutate(case, name, rng)) is not None}
    assert len(mutated) > 40
    assert [name for name, plan in mutated.items() if not audit(case.problem, case.fabric, case.architectures, plan)] == []


@pytest.mark.thorough
@pytest.mark.parametrize("overrides", OVERRIDES, ids=["as-shipped", "gpus", "latency", "throughput", "hockney"])
@pytest.mark.parametrize("path", PROBLEMS, ids=[path.stem for path in PROBLEMS])
def test_every_answer_passes_and_its_mutations_do_not(path, overrides):
    case = answered(path, overrides)
    if case is None:
        return
    assert audit(case.problem, case.fabric, case.architectures, case.plan) == ()
    rng = random.Random(6)
    for name in sorted(MUTATIONS):
        plan = mutate(case, name, rng)
        assert plan is None or audit(case.problem, case.fabric, case.architectures, plan), name


def test_levels_are_those_of_the_fabric():
    """Random sets of GPUs of one pool: the recomputed level is the one the fabric finds by itself."""
    rng = random.Random(8)
    for case in cases():
        fabric, sites = case.fabric, Sites.of(case.fabric)
        for _ in range(40):
            pool = rng.choice(fabric.pools)
            members = [site for site in range(sites.count) if sites.pool[site] == pool.index]
            chosen = rng.sample(members, min(len(members), rng.choice([1, 2, 2, 3, 4, 8])))
            placed = placed_levels(one_replica(sites, fabric, pool, chosen))
            gpus = [GpuId(fabric.nodes[int(sites.node[site])], int(site - sites.first[sites.node[site]])) for site in chosen]
            try:
                expected = fabric.level(gpus)
            except PlannerError:
                assert placed.replica[0] == APART
            else:
                assert pool.levels[int(placed.replica[0])] == expected


def one_replica(sites, fabric, pool, chosen):
    """A replica on the chosen GPUs, as one TP group."""
    zeros = np.zeros(len(chosen), dtype=np.int64)
    site = np.array(chosen, dtype=np.int64)
    ranks = RankColumns(zeros, np.arange(len(chosen)), zeros, np.arange(len(chosen)), zeros, zeros, sites.node[site], zeros, zeros)
    return Placement(ranks, site, sites, fabric.pools, np.array([pool.index], dtype=np.int64))

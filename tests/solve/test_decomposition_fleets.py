"""Synthetic fleets of the scale table: proved, placed, and proved again by the whole program where that ends too."""

from __future__ import annotations

import pytest

from benchmarks.fleets import fleet, instance, one_shape_each
from benchmarks.heuristics import enumerate_shapes, greedy
from benchmarks.scale import recheck
from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.decomposition.proof import decompose
from planner.solve.dominance import worth_keeping
from planner.solve.model import build
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES


@pytest.mark.parametrize(("gpus", "models", "seed"), [(128, 5, 1), (1_024, 5, 5), (1_024, 20, 2)])
def test_small_fleets_are_proved_and_placed(gpus, models, seed):
    question = instance(gpus, models, seed)
    decision = decide(question, SolveOptions(), RULES)
    assert decision.status is Status.OPTIMAL
    assert decision.model is not None
    recheck(decision.model.instance, place(decision.model, decision.values), decision.stages[0].value)
    heuristic = greedy(question)
    assert heuristic is None or decision.stages[0].value <= heuristic


@pytest.mark.parametrize(("gpus", "models", "seed", "cents"), [(1_024, 20, 1, 135_594), (1_024, 20, 2, 128_197), (1_024, 20, 3, 154_141)])
def test_optima_are_those_of_the_study(gpus, models, seed, cents):
    """The study that set the targets proved these optima with a decomposition of its own."""
    question = instance(gpus, models, seed)
    model = build(question.keep(worth_keeping(question, ties=False)), RULES)
    apart = decompose(model, model.cost, cpsat.Limits(1.0))
    assert apart is not None
    assert apart.status is Status.OPTIMAL
    assert apart.objective == cents * 10**4


@pytest.mark.parametrize("seed", [1, 2, 5, 11])
def test_the_whole_program_proves_the_same(seed):
    question = instance(1_024, 5, seed)
    model = build(question.keep(worth_keeping(question, ties=False)), RULES)
    direct = cpsat.minimise(model.program, model.cost, cpsat.Limits(4.0))
    apart = decompose(model, model.cost, cpsat.Limits(1.0))
    assert apart is not None
    assert direct.status is Status.OPTIMAL
    assert apart.bound is not None
    assert apart.bound <= direct.objective
    assert apart.objective is None or apart.objective >= direct.objective
    assert apart.status is not Status.OPTIMAL or apart.objective == direct.objective


def test_one_shape_each_is_a_rule_of_its_own():
    question = instance(128, 5, 1, 0.45)
    free, single = decide(question, SolveOptions(), RULES), decide(one_shape_each(question), SolveOptions(), RULES)
    enumerated = enumerate_shapes(question)
    assert free.status is Status.OPTIMAL
    assert single.status is Status.OPTIMAL
    assert enumerated is not None
    assert free.stages[0].value <= single.stages[0].value <= enumerated


def test_the_same_seed_draws_the_same_fleet():
    assert fleet(1_024, 3) == fleet(1_024, 3)
    assert fleet(1_024, 3) != fleet(1_024, 4)
    taken = 1 - sum(fleet(10_240, 1).room().values()) / 10_240
    assert 0.09 < taken < 0.15

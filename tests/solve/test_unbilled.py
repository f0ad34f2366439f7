"""Whole nodes cost no less than GPUs one by one, and the counts of the best plan stay among those that may be."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.decomposition.proof import take_apart
from planner.solve.model import build
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.program import evaluate
from planner.solve.result import Result
from planner.solve.rules import RULES
from planner.solve.unbilled import better_near, unbilled
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of


def question_of(seed):
    """Two or three deployments on a pool of whole nodes and one that may be either; some scopes have two nodes."""
    draw = random.Random(seed)

    def scopes(node_price):
        rows = []
        for _ in range(draw.randint(2, 4)):
            nodes = (draw.randint(1, 4), draw.randint(1, 4)) if draw.random() < 0.4 else ()
            rows.append(ScopeRow(sum(nodes) or draw.randint(1, 8), nodes=nodes))
        return pool_of(rows, node_price)

    deployments = draw.randint(2, 3)
    rows = [
        ShapeRow(size, draw.randint(1, 6), size * groups * draw.randint(1, 3), deployment, draw.randint(0, 1), groups)
        for deployment in range(deployments)
        for size, groups in [(draw.choice([1, 2, 3, 4]), draw.choice([1, 1, 2])) for _ in range(draw.randint(2, 4))]
    ]
    pools = [scopes(draw.randint(4, 12)), scopes(draw.choice([None, draw.randint(4, 12)]))]
    return instance_of(rows, [draw.randint(2, 9) for _ in range(deployments)], pools)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_bound_holds_and_the_counts_stay(seed):
    question = question_of(seed)
    model = build(question, RULES)
    direct = cpsat.minimise(model.program, model.cost, cpsat.Limits(2.0))
    loose_question = unbilled(question)
    assert loose_question is not None
    loose = build(loose_question, RULES)
    without = cpsat.minimise(loose.program, loose.cost, cpsat.Limits(2.0))
    if direct.objective is None:
        return
    assert without.objective is not None
    assert without.objective <= direct.objective
    apart = take_apart(loose, loose.cost)
    if apart is not None and (found := apart.ranges(direct.objective, minimal=False)) is not None:
        bounded = model.program.within(model.count, found.low.tolist(), found.high.tolist())
        assert cpsat.minimise(bounded, model.cost, cpsat.Limits(2.0)).objective == direct.objective
    decision = decide(question, SolveOptions(), RULES)
    assert decision.status is Status.OPTIMAL
    assert decision.stages[0].value == direct.objective


def test_boxes_only_make_a_plan_cheaper():
    better = 0
    for seed in range(30):
        model = build(question_of(seed), RULES)
        start = cpsat.minimise(model.program, {}, cpsat.Limits(1.0)).values
        if start is None:
            continue
        known = Result(Status.FEASIBLE, start, evaluate(model.cost, start), 0, "effort")
        found = better_near(
            model, model.cost, known, lambda box, hint, model=model: cpsat.minimise(box, model.cost, cpsat.Limits(0.2), hint)
        )
        assert not model.program.violated(found.values)
        assert found.objective == evaluate(model.cost, found.values) <= known.objective
        better += found.objective < known.objective
    assert better > 5


def test_gpus_one_by_one_are_left_as_they_are():
    assert unbilled(instance_of([ShapeRow(4)], [1], [pool_of([ScopeRow(8)])])) is None

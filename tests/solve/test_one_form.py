"""Where all replicas have one shape, a form leaves as a whole or stays as a whole, and nothing gets dearer by it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.dominance import worth_keeping
from planner.solve.instance import ReplicaLimits
from planner.solve.model import build
from planner.solve.rules import RULES
from tests.solve.fleets import ShapeRow, free_pool, instance_of


def of_forms(rows, forms, loads, pools, **changed):
    """Instance whose shapes have the given forms, all replicas of a deployment of one of them."""
    found = instance_of(rows, loads, pools, [ReplicaLimits(one_shape=True) for _ in loads], **changed)
    return replace(found, shapes=replace(found.shapes, form=np.array(forms, dtype=np.int64)))


def test_a_form_leaves_where_another_stands_in_on_every_pool():
    rows = [ShapeRow(4, 4), ShapeRow(4, 3), ShapeRow(4, 4, pool=1), ShapeRow(4, 3, pool=1)]
    pools = [free_pool(8), free_pool(8)]
    assert worth_keeping(of_forms(rows, [0, 1, 0, 1], [8], pools)).tolist() == [True, False, True, False]


def test_a_form_stays_where_the_other_is_not_offered():
    rows = [ShapeRow(4, 4), ShapeRow(4, 3), ShapeRow(4, 3, pool=1)]
    assert worth_keeping(of_forms(rows, [0, 1, 1], [8], [free_pool(8), free_pool(8)])).all()


def test_two_forms_that_replace_one_only_together_do_not():
    """Each is the better one on one pool, so neither stands in for the third on both."""
    rows = [ShapeRow(4, 4), ShapeRow(4, 2, pool=1), ShapeRow(4, 2), ShapeRow(4, 4, pool=1), ShapeRow(4, 3), ShapeRow(4, 3, pool=1)]
    assert worth_keeping(of_forms(rows, [0, 0, 1, 1, 2, 2], [8], [free_pool(8), free_pool(8)])).all()


def test_copies_of_a_smaller_form_stand_in_for_a_larger():
    rows = [ShapeRow(4, 4, price=4), ShapeRow(8, 7, price=8)]
    assert worth_keeping(of_forms(rows, [0, 1], [8], [free_pool(8)])).tolist() == [True, False]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_least_cost_is_that_of_all_forms(seed):
    draw = random.Random(seed)
    rows, forms = [], []
    for form in range(draw.randint(2, 7)):
        size, groups, deployment = draw.choice([1, 2, 4]), draw.choice([1, 1, 2]), form % 2
        for pool in draw.choice([[0], [1], [0, 1], [0, 1]]):
            price = size * groups * draw.randint(1, 3)
            rows.append(ShapeRow(size, draw.randint(1, 5), price, deployment, pool, groups))
            forms.append(form)
    pools = [free_pool(*(draw.randint(1, 4) for _ in range(3))), free_pool(*(draw.randint(1, 8) for _ in range(2)))]
    question = of_forms(rows, forms, [draw.randint(1, 8), draw.randint(1, 8)], pools)
    found = []
    for asked in (question, question.keep(worth_keeping(question, ties=False)), question.keep(worth_keeping(question))):
        model = build(asked, RULES)
        result = cpsat.minimise(model.program, model.cost, cpsat.Limits(1.0))
        assert result.status in {Status.OPTIMAL, Status.INFEASIBLE}
        found.append(result.objective)
    assert found[0] == found[1] == found[2]

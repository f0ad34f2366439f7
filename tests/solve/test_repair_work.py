"""All questions about repairs share one allowance of work; what it does not suffice for is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.fleets import instance as fleet_instance
from planner.plan.shape import Degrees
from planner.solve import SolveOptions, cpsat, no_plan
from planner.solve.asker import Asker, fewer_shapes, gallop, without_deployment
from planner.solve.decomposition.columns import Generation
from planner.solve.decomposition.split import split
from planner.solve.dominance import worth_keeping
from planner.solve.instance import DeploymentRules, ReplicaLimits, Spread
from planner.solve.model import build
from planner.solve.no_plan import why_no_plan
from planner.solve.reader import read
from planner.solve.repair import Added, Freed, Repairs, repairs
from planner.solve.rules import RULES
from planner.solve.work import WHOLE, Work
from tests.solve.fabrics import hgx_fabric, problem_of, shape_of
from tests.solve.fleets import ShapeRow, free_pool, instance_of

EFFORT = cpsat.Limits(0.2)
TP8 = shape_of(Degrees(8), 32, 24.0)


@pytest.mark.parametrize(
    ("gpus", "models", "more"),
    [
        (256, 5, 3),
        pytest.param(1_024, 8, 3, marks=pytest.mark.thorough),
        pytest.param(10_240, 20, 2, marks=pytest.mark.thorough),
    ],
)
def test_a_large_fleet_is_answered_within_a_part_of_the_work(gpus, models, more):
    """Loads of several times the fleet: share, nodes of every type, each within a unit or two of what is ruled out."""
    question = fleet_instance(gpus, models, 1)
    question = replace(question, loads=question.loads * more)
    work = Work()
    found = repairs(question, RULES, EFFORT, work)
    assert work.left > 0
    assert found.open == ()
    assert found.served is not None
    assert found.served_proved - found.served <= 2
    # The tightest share is hard to find again from nothing.
    assert Asker(RULES, EFFORT).possible(replace(question, loads=-(-question.loads * (found.served - 10) // 1000)))
    assert found.nodes
    assert all(item.proved is None or item.proved >= 0.95 * item.scopes for item in found.nodes)


def test_without_work_nothing_is_claimed():
    question = instance_of([ShapeRow(8)], [4], [free_pool(8, 8)], limits=[ReplicaLimits(minimum=3)])
    found = repairs(question, RULES, EFFORT, Work(0.0))
    assert (found.served, found.freed, found.nodes, found.rules) == (None, Freed(), (), ())
    assert found.open == ("free", "load", 0, "rules")


def test_one_kind_leaves_work_for_the_next():
    work = Work(10.0)
    with work.share(0.25):
        work.spend(2.5)
        assert work.over
    assert not work.over
    with work.share(0.5), work.share(1.0):
        work.spend(3.7)
        assert not work.over
        work.spend(0.1)
        assert work.over
    work.spend(WHOLE)
    assert work.over


def test_what_was_not_examined_is_named():
    problem, fabric = problem_of(), hgx_fabric()
    told = why_no_plan(read(problem, fabric, [TP8], [128.0]), fabric, SolveOptions(), ["chat-0"], Work(0.0))
    assert [item.code for item in told] == ["REPAIRS_NOT_EXAMINED"]
    for words in ("freeing GPUs", "a lower load", "more h100-sxm-80gb nodes"):
        assert words in told[0].message


def test_unproved_repairs_are_not_called_least(monkeypatch):
    problem, fabric = problem_of(), hgx_fabric()
    question = read(problem, fabric, [TP8], [128.0])

    def told(found: Repairs) -> list[str]:
        monkeypatch.setattr(no_plan, "repairs", lambda *_: found)
        return [item.message for item in why_no_plan(question, fabric, SolveOptions(), ["chat-0"])]

    assert told(Repairs(served=500, served_proved=502, freed=Freed(((0, 1, 3),), 2), nodes=(Added(0, 5, None, 3),))) == [
        "the free GPUs serve 50.0 % of the load and not more than 50.2 %",
        "at most 3 more free GPUs would do; fewer than 2 would not",
        "at most 5 more empty h100-sxm-80gb nodes (40 GPUs) would do; fewer than 3 would not",
    ]
    assert told(Repairs(served=500, served_proved=999, freed=Freed(((0, 1, 3),), 0), nodes=(Added(0, 5, None, 1),))) == [
        "the free GPUs serve 50.0 % of the load and more was not ruled out",
        "at most 3 more free GPUs would do; fewer was not ruled out",
        "at most 5 more empty h100-sxm-80gb nodes (40 GPUs) would do; fewer was not ruled out",
    ]
    assert told(Repairs(served=500, served_proved=500, freed=Freed(((0, 1, 3),), 3), nodes=(Added(0, 5),))) == [
        "the free GPUs serve 50.0 % of the load and no more",
        "3 more free GPUs would do",
        "5 more empty h100-sxm-80gb nodes (40 GPUs) would do",
    ]


@pytest.mark.parametrize("least", range(1, 40))
@pytest.mark.parametrize("guess", [None, 3, 17])
def test_a_gallop_finds_the_least(least, guess):
    assert gallop(lambda number: number >= least, 1, 64, guess) == (least, least)
    assert gallop(lambda number: number >= least, 1, least - 1, None) == (None, max(1, least))


def test_a_gallop_over_open_questions_proves_nothing():
    """From 5 on it is enough, but neither 3 nor 4 is decided."""
    answers = {1: False, 2: False, 3: None, 4: None}
    assert gallop(lambda number: answers.get(number, True), 1, 64) == (5, 3)
    assert gallop(lambda _: None, 1, 4) == (None, 1)


def test_shapes_that_a_rule_needs_stay():
    """The larger shape costs more and serves less a GPU, yet it alone keeps two replicas apart on two nodes."""
    rows = [ShapeRow(4, 4, 4), ShapeRow(8, 7, 9)]
    plain = instance_of(rows, [14], [free_pool(8, 8)])
    assert len(fewer_shapes(plain).shapes) == 1
    spread = instance_of(rows, [14], [free_pool(8, 8)], rules=[DeploymentRules(Spread("node", 1))])
    assert len(fewer_shapes(spread).shapes) == 2
    assert Asker(RULES, EFFORT).possible(fewer_shapes(spread))


def test_a_question_without_one_deployment():
    rows = [ShapeRow(8, deployment=0), ShapeRow(4, deployment=1)]
    question = instance_of(rows, [2, 2], [free_pool(8, 8)])
    asker = Asker(RULES, EFFORT)
    assert asker.possible(question) is False
    assert asker.possible(without_deployment(question, 0))
    assert asker.possible(without_deployment(question, 1))
    assert asker.possible(without_deployment(instance_of(rows, [4, 2], [free_pool(8, 8)]), 1)) is False


def test_with_a_limit_on_replicas_one_stands_in_for_one():
    """Of shapes alike in GPUs the one that serves less goes; two smaller ones, which serve as much together, do not stand in for a larger."""
    rows = [ShapeRow(4, 4), ShapeRow(8, 8), ShapeRow(8, 7)]
    for changed in ({"limits": [ReplicaLimits(maximum=2)]}, {"rules": [DeploymentRules(Spread("node", 1))]}):
        question = instance_of(rows, [16], [free_pool(8, 8)], **changed)
        assert question.keep(worth_keeping(question)).source.tolist() == [0, 1]


def test_a_deployment_without_a_choice_yet_has_an_empty_list():
    model = build(fleet_instance(128, 5, 1), RULES)
    parts = split(model, model.cost)
    assert parts is not None
    assert Generation(parts, 1).known(2).shape == (0, len(parts.shapes[2]))

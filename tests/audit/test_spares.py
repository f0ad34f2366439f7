"""The auditor on plans with spares: a right plan passes, and every way to spoil one is found."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from planner.answer.answering import Answer, Options, answer
from planner.audit.audit import audit
from planner.diagnostics import PlannerError
from planner.plan.document import PlanDocument

PROBLEM = Path(__file__).parents[2] / "problems/mixed_fleet.yaml"


@cache
def answered(*overrides: str) -> Answer:
    return answer(str(PROBLEM), Options(overrides=("deployments.chat.spares=1", *overrides)))


def codes(change):
    found = answered()
    data = found.plan.model_dump(mode="json")
    change(data, data["deployments"][0])
    loaded = found.loaded
    return {item.code for item in audit(loaded.problem, loaded.fabric, loaded.architectures, PlanDocument.model_validate(data))}


def nothing(data, chat):
    assert len(chat["spares"]) == 1


def left_out(data, chat):
    del chat["spares"]


def on_a_replica(data, chat):
    chat["spares"][0]["ranks"] = chat["replicas"][0]["ranks"]


def over_two_nodes(data, chat):
    chat["spares"][0]["ranks"][0].update(node="h100-04", domain="h100-04/nvlink")


def too_few_gpus(data, chat):
    chat["spares"][0]["ranks"].pop()


def of_another_shape(data, chat):
    chat["spares"][0]["shape"]["batch"] += 1


def unpaid(data, chat):
    chat["spares"][0]["price_per_hour"] = 0.0


def twice(data, chat):
    chat["spares"].append(chat["spares"][0])


def unasked(data, chat):
    other = data["deployments"][1]
    shape = other["replicas"][0]["shape"]
    other["spares"] = [{"shape": shape, "ranks": chat["spares"][0]["ranks"], "price_per_hour": 20.0}]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (nothing, set()),
        (left_out, {"SPARES_MISSING"}),
        (on_a_replica, {"GPU_USED_TWICE"}),
        (over_two_nodes, {"LOCALITY_MISMATCH", "TP_LEAVES_SCOPE", "CROSS_NODE_TP"}),
        (too_few_gpus, {"GPU_COUNT_MISMATCH"}),
        (of_another_shape, {"SPARES_MISSING"}),
        (unpaid, {"PRICE_MISMATCH"}),
        (twice, {"GPU_USED_TWICE"}),
        (unasked, {"SPARES_NOT_ASKED"}),
    ],
)
def test_what_is_wrong_with_spares_is_found(change, found):
    told = codes(change)
    assert told & found if found else not told


def test_spares_cost_what_their_gpus_cost():
    plan = answered().plan
    without = answer(str(PROBLEM)).plan
    assert plan.status == "optimal"
    assert plan.cost_per_hour - without.cost_per_hour == pytest.approx(plan.deployments[0].spares[0].price_per_hour)
    assert plan.gpus_used == without.gpus_used


def test_the_gpus_kept_free_count_where_gpus_are_made_few():
    plan = answered("objective=gpus").plan
    assert answered("objective=gpus").audit_errors == ()
    assert plan.objective.value == plan.gpus_used + sum(len(spare.ranks) for spare in plan.deployments[0].spares)


def test_spares_that_find_no_room_leave_no_plan():
    path = PROBLEM.with_name("two_node_h100.yaml")
    overrides = ("deployments.chat.spares=1", "deployments.chat.forbid=h100-02")
    assert answer(str(path), Options(overrides=overrides)).plan.status == "infeasible"


def test_spares_are_counted():
    with pytest.raises(PlannerError) as caught:
        answer(str(PROBLEM), Options(overrides=("deployments.chat.spares=-1",)))
    assert [fault.code for fault in caught.value.diagnostics] == ["OUT_OF_RANGE"]

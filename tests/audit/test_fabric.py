"""The fabric and the targets that a plan shows are audited: each change of them is found."""

from __future__ import annotations

from pathlib import Path

import pytest

import planner
from planner.audit.audit import audit
from planner.plan.document import PlanDocument

PROBLEM = str(Path(__file__).parents[2] / "problems" / "mixed_fleet.yaml")


@pytest.fixture(scope="module")
def answer():
    return planner.solve(PROBLEM)


def codes(answer, data):
    loaded = answer.problem
    plan = PlanDocument.model_validate(data)
    return {item.code for item in audit(loaded.problem, loaded.fabric, loaded.architectures, plan)}


def changed(answer, index, **values):
    data = answer.plan.model_dump(mode="json")
    data["fabric"]["nodes"][index].update(values)
    return codes(answer, data)


def test_the_plan_as_it_is_passes(answer):
    """Nothing is found in the planner's own document."""
    assert codes(answer, answer.plan.model_dump(mode="json")) == set()


@pytest.mark.parametrize(
    "values",
    [
        {"nodes": "a100-[01-02]"},
        {"nodes": "nowhere-[1-2]"},
        {"nodes": "]["},
        {"count": 3},
        {"gpu": "h100-sxm-80gb"},
        {"gpus": 4},
        {"leaf": "leaf-h100"},
        {"free_gpus": 15},
        {"taken_gpus": 1},
        {"failed": [0]},
    ],
)
def test_a_wrong_group_of_nodes_is_found(answer, values):
    """Names, counts, type, leaf, states."""
    assert "FABRIC_MISMATCH" in changed(answer, 0, **values)


def test_a_group_left_out_or_shown_twice_is_found(answer):
    """Every node is shown once."""
    data = answer.plan.model_dump(mode="json")
    nodes = data["fabric"]["nodes"]
    data["fabric"]["nodes"] = nodes[1:]
    assert "FABRIC_MISMATCH" in codes(answer, data)
    data["fabric"]["nodes"] = [*nodes, nodes[0]]
    assert "FABRIC_MISMATCH" in codes(answer, data)


@pytest.mark.parametrize(("name", "value"), [("tpot_s", 0.01), ("ttft_s", None), ("prompt_tokens", 1), ("min_efficiency", 0.5)])
def test_a_wrong_target_is_found(answer, name, value):
    """What is shown as asked was asked."""
    data = answer.plan.model_dump(mode="json")
    data["deployments"][0]["asked"][name] = value
    assert "ASKED_MISMATCH" in codes(answer, data)

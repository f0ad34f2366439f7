"""Cost against latency through the command and from Python, on the shipped problems."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

import planner
from planner.answer.answering import Options, answer
from planner.answer.pareto import Front
from planner.cli.app import run

ROOT = Path(__file__).parents[2]


def front_of(name: str, *overrides: str, by: str = "tpot") -> Front:
    found = answer(str(ROOT / "problems" / f"{name}.yaml"), Options(overrides, pareto=by))
    assert found.audit_errors == ()
    assert found.front is not None
    assert found.plan.pareto == found.front.document
    return found.front


@pytest.mark.parametrize("by", ["tpot", "ttft"])
def test_points_are_proved_audited_and_undominated(by):
    front = front_of("four_gpu_nodes", by=by)
    points = front.document.points
    assert front.document.complete
    assert len(points) >= 2
    assert {point.proof for point in points} == {"optimal"}
    times = [getattr(point, f"{by}_s") for point in points]
    assert all(before.cost_per_hour < after.cost_per_hour for before, after in pairwise(points))
    assert all(before > after for before, after in pairwise(times))
    assert [plan.cost_per_hour for plan in front.plans] == [point.cost_per_hour for point in points]
    loaded = planner.load(ROOT / "problems/four_gpu_nodes.yaml")
    assert all(planner.audit(loaded, plan).ok for plan in front.plans)


def test_the_ends_are_the_cheapest_and_the_fastest_plan():
    path = str(ROOT / "problems/two_node_h100.yaml")
    points = front_of("two_node_h100").document.points
    assert points[0].cost_per_hour == answer(path).plan.cost_per_hour
    fastest = answer(path, Options(["objective=latency"])).plan
    assert fastest.objective is not None
    assert points[-1].tpot_s == pytest.approx(fastest.objective.value, abs=1e-9)


def test_the_plan_is_the_one_without_the_front():
    path = str(ROOT / "problems/two_node_h100.yaml")
    with_front = answer(path, Options(pareto="tpot")).plan
    assert with_front.model_copy(update={"pareto": None}) == answer(path).plan
    assert with_front.model_dump_json() == answer(path, Options(pareto="tpot")).plan.model_dump_json()


def test_the_command_prints_the_front(capsys):
    path = str(ROOT / "problems/two_node_h100.yaml")
    assert run(["solve", path, "--pareto", "--json", "-q"]) == 0
    told = json.loads(capsys.readouterr().out)["pareto"]
    assert [point["cost_per_hour"] for point in told["points"]] == [24.0, 48.0]
    assert set(told["points"][0]) == {"cost_per_hour", "gpus_used", "tpot_s", "ttft_s", "shapes", "bound", "gap", "proof"}
    assert run(["solve", path, "--pareto-by", "ttft", "-q"]) == 0
    assert "cost against time to first token: 2 plans, audited" in capsys.readouterr().out


def test_without_a_plan_there_is_no_front(capsys):
    path = str(ROOT / "problems/eight_free_as_6_plus_2.yaml")
    assert run(["solve", path, "--pareto", "-q"]) == 3
    assert "against" not in capsys.readouterr().out
    assert front_of("eight_free_as_6_plus_2").document.points == ()


def test_loads_that_may_be_served_in_part_are_no_front_of_what_cannot_be():
    """The greatest throughput serves part of a load that no plan serves whole: there is a plan and no front."""
    found = answer(
        str(ROOT / "problems/two_node_h100.yaml"),
        Options(["objective=throughput", "deployments.chat.workload.concurrency=900"], pareto="tpot"),
    )
    assert found.plan.deployments
    assert found.front is not None
    assert found.front.document.points == ()
    assert found.front.document.complete

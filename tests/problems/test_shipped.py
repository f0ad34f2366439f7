"""The shipped problems: each is answered as an engineer would answer it, passes the audit, and answers the same bytes twice."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from planner.answer.answering import Answer, Options, answer
from planner.cli.app import run
from planner.plan.document import DeploymentDocument

ROOT = Path(__file__).parents[2]
PROBLEMS = sorted(path.stem for path in (ROOT / "problems").glob("*.yaml"))


@cache
def answered(name: str, *overrides: str) -> Answer:
    return answer(str(ROOT / "problems" / f"{name}.yaml"), Options(overrides=overrides))


def deployment(name: str, which: str | None = None) -> DeploymentDocument:
    found = answered(name).plan.deployments
    return next(item for item in found if which is None or item.name == which)


def degrees(item: DeploymentDocument) -> set[tuple[int, int]]:
    return {(replica.shape.tp, replica.shape.pp) for replica in item.replicas}


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_shipped_problem_is_answered_and_audited(name):
    result = answered(name)
    assert result.audit_errors == ()
    assert result.plan.status == ("infeasible" if name == "eight_free_as_6_plus_2" else "optimal")
    if result.plan.objective is not None:
        assert result.plan.objective.gap == 0


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_same_problem_gives_the_same_bytes(name):
    again = answer(str(ROOT / "problems" / f"{name}.yaml"))
    assert again.plan.model_dump_json() == answered(name).plan.model_dump_json()


def test_405b_fp8_takes_one_node_of_two():
    item = deployment("two_node_h100")
    assert degrees(item) == {(8, 1)}
    assert len(item.replicas) == 1
    assert len({rank.node for rank in item.replicas[0].ranks}) == 1
    assert answered("two_node_h100").plan.cost_per_hour == pytest.approx(24.0)


def test_tp16_over_two_nodes_is_refused_for_leaving_the_domain():
    codes = {(item.shape.tp, item.code) for item in answered("two_node_h100").plan.rejected}
    assert (16, "CROSS_NODE_TP") in codes
    assert (3, "HEADS_NOT_DIVISIBLE") in codes


def test_the_efficiency_threshold_is_met_and_bounds_tensor_parallelism():
    plan = answered("one_node_70b_efficiency").plan
    for replica in plan.deployments[0].replicas:
        assert replica.times.efficiency >= 0.70
    loose = answered("one_node_70b_efficiency", "deployments.assistant.min_efficiency=1%").plan
    assert loose.cost_per_hour <= plan.cost_per_hour


def test_deepseek_spreads_its_experts():
    item = deployment("deepseek_v3_h200")
    assert all(replica.shape.ep > 1 for replica in item.replicas)


def test_six_cards_run_tp4_and_leave_two_idle():
    plan = answered("six_a6000").plan
    assert degrees(plan.deployments[0]) == {(4, 1)}
    assert plan.gpus_used == 4
    assert (6, "HEADS_NOT_DIVISIBLE") in {(item.shape.tp, item.code) for item in plan.rejected}


def test_six_and_two_free_gpus_are_no_domain_of_eight(capsys):
    assert run(["solve", str(ROOT / "problems/eight_free_as_6_plus_2.yaml")]) == 3
    text = capsys.readouterr().out
    assert "the fullest has 6 (8 are free in all)" in text
    assert "[DOMAIN_TOO_FULL]" in text


def test_four_gpu_nodes_keep_tp_inside_a_node():
    for item in answered("four_gpu_nodes").plan.deployments:
        assert all(replica.shape.tp <= 4 for replica in item.replicas)


def test_405b_bf16_runs_as_tp8_in_a_pipeline_of_nodes():
    item = deployment("405b_bf16_four_nodes")
    assert degrees(item) == {(8, 2)}
    for replica in item.replicas:
        for stage in (0, 1):
            assert len({rank.node for rank in replica.ranks if rank.stage == stage}) == 1


def test_a_mixed_fleet_serves_all_three_models():
    plan = answered("mixed_fleet").plan
    assert {item.name for item in plan.deployments} == {"chat", "code", "tags"}
    assert all(item.capacity >= item.load * (1 - 1e-6) for item in plan.deployments)


def test_one_nvl72_rack_joins_trays_in_one_domain():
    item = deployment("nvl72_rack")
    for replica in item.replicas:
        assert len({rank.domain for rank in replica.ranks}) == 1


def test_json_is_one_document_on_stdout(capsys):
    assert run(["solve", str(ROOT / "problems/two_node_h100.yaml"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format_version"] == 1
    assert document["deployments"][0]["replicas"][0]["shape"]["tp"] == 8


@pytest.mark.parametrize(
    ("shape", "code", "word"),
    [("tp16", 0, "CROSS_NODE_TP"), ("tp8", 0, "is in the plan"), ("tp8-pp2", 0, "is possible"), ("unicorn", 1, "")],
)
def test_explain_says_why_a_shape_is_not_chosen(shape, code, word, capsys):
    assert run(["solve", str(ROOT / "problems/two_node_h100.yaml"), "--explain", shape]) == code
    assert word in capsys.readouterr().out


def test_force_keeps_one_shape(capsys):
    assert run(["solve", str(ROOT / "problems/two_node_h100.yaml"), "--force", "tp8-pp2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {(replica["shape"]["tp"], replica["shape"]["pp"]) for replica in document["deployments"][0]["replicas"]} == {(8, 2)}
    assert document["gpus_used"] == 16


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "eight_free_as_6_plus_2"])
def test_a_reader_sees_what_the_times_rest_on(name):
    """Fitted constants tell their error, and constants that stand in for a GPU nobody measured tell none."""
    plan = answered(name).plan
    times = [item for item in plan.sources if item.figure.startswith("times of")]
    assert {item.deployment for item in times} == {item.name for item in plan.deployments}
    for item in times:
        assert item.source
        assert (item.median_error is None) == (item.basis == "assumed")
    prices = [item for item in plan.sources if item.figure.startswith("price of")]
    assert all(item.basis == "given" or item.source for item in prices)

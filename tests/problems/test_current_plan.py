"""A plan that runs is kept, moved and left, from its file to the audited plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.answer.answering import Options, answer
from planner.audit.audit import audit
from planner.cli.app import run
from planner.diagnostics import PlannerError
from planner.plan.diff import plan_difference
from planner.plan.document import PlanDocument

TOPOLOGY = """
name: three
nodes:
  - {name: "h100-[01-03]", gpu: h100-sxm-80gb, gpus: 8, scale_up: nvswitch, nics: {count: 8, speed: 400Gb/s}, leaf: leaf-1, price: $24/h}
fabric: {kind: infiniband, oversubscription: 1}
"""
PROBLEM = """
name: fleet
topology: topology.yaml
deployments:
  - {name: chat, model: llama-3.1-70b, workload: {prompt_tokens: 1024, output_tokens: 256, concurrency: 64}, slo: {tpot: 60ms}}
  - {name: small, model: llama-3.1-8b, workload: {prompt_tokens: 1024, output_tokens: 256, concurrency: 400}, slo: {tpot: 40ms}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("current")
    (where / "topology.yaml").write_text(TOPOLOGY)
    (where / "problem.yaml").write_text(PROBLEM)
    plan = answer(str(where / "problem.yaml")).plan
    # What runs is elsewhere than a fresh plan would put it: node 1 stands for node 3, and the other way round.
    text = plan.model_dump_json().replace("h100-01", "h100-0X").replace("h100-03", "h100-01").replace("h100-0X", "h100-03")
    (where / "running.json").write_text(text)
    return where


def plan_with(folder: Path, *overrides: str) -> PlanDocument:
    found = answer(str(folder / "problem.yaml"), Options(overrides=(f"current.plan={folder / 'running.json'}", *overrides)))
    assert found.audit_errors == ()
    return found.plan


def running(folder: Path) -> PlanDocument:
    return PlanDocument.model_validate_json((folder / "running.json").read_text())


def gpus_of(plan: PlanDocument, name: str) -> list[set[tuple[str, int]]]:
    return [{(rank.node, rank.gpu) for rank in one.ranks} for item in plan.deployments if item.name == name for one in item.replicas]


def test_unchanged_all_stays_where_it_is(folder):
    for price in ("$0", "$3", "$1000000"):
        plan = plan_with(folder, f"current.price_per_move={price}")
        assert plan.current is not None
        assert (plan.current.moves, plan.current.stopped, plan.current.moves_per_hour) == (0, 0, 0.0)
        before = running(folder)
        assert {frozenset(gpus) for gpus in gpus_of(plan, "small")} == {frozenset(gpus) for gpus in gpus_of(before, "small")}
        assert plan.objective is not None
        assert plan.objective.value == pytest.approx(plan.cost_per_hour)
        found = plan_difference(before, plan)
        assert found.moves == 0
        assert all(change.action == "keep" for change in found.replicas)


def test_a_move_is_paid_over_the_hours_stated(folder):
    """More load wants more replicas: the objective is money plus moves x price / hours."""
    more = ("deployments.chat.workload.concurrency=140", "current.price_per_move=$3")
    day, week = plan_with(folder, *more), plan_with(folder, *more, "current.over=168h")
    for plan, hours in ((day, 24), (week, 168)):
        assert plan.current is not None
        assert plan.objective is not None
        assert plan.current.moves > 0
        assert plan.current.over_hours == hours
        assert plan.objective.value == pytest.approx(plan.cost_per_hour + plan.current.moves * 3 / hours)


def test_for_nothing_the_money_is_that_of_a_fresh_plan(folder):
    load = "deployments.chat.workload.concurrency=140"
    fresh = answer(str(folder / "problem.yaml"), Options(overrides=(load,))).plan
    assert plan_with(folder, load, "current.price_per_move=$0").cost_per_hour == pytest.approx(fresh.cost_per_hour)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ("failed=[h100-03:{gpu}]", "GPU_FAILED", "is failed"),
        ("taken=[h100-03:{gpu}]", "GPU_TAKEN", "is taken"),
        ("deployments.chat.slo.tpot=13ms deployments.chat.workload.concurrency=2", "TPOT_MISSED", "asked 13.0 ms"),
        ("deployments.chat.parallelism.tp=8", "DEGREE_NOT_ALLOWED", "allowed is 8"),
        ("deployments.chat.precision.kv_cache=fp8", "PRECISION_NOT_ALLOWED", "not what is asked for"),
        ("deployments.chat.engine=sglang", "ENGINE_MISMATCH", "asked for is sglang"),
        ("deployments.chat.model=llama-3.1-70b-fp8", "MODEL_MISMATCH", "asked for is llama-3.1-70b-fp8"),
        ("deployments.chat.forbid=h100-03", "GPU_FORBIDDEN", "may not use GPU"),
        ("deployments.chat.name=talk", "DEPLOYMENT_UNKNOWN", "nobody asks for a deployment chat"),
    ],
)
def test_says_what_cannot_stay_and_why(folder, change, code, words):
    gpu = min(gpu for _, gpu in gpus_of(running(folder), "chat")[0])
    plan = plan_with(folder, "current.price_per_move=$3", *change.format(gpu=gpu).split())
    assert plan.current is not None
    lost = [item for item in plan.current.not_kept if item.deployment == "chat"]
    assert [(item.replica, item.code) for item in lost] == [(0, code)]
    assert words in lost[0].message
    told = [item.message for item in plan.diagnostics if item.code == "REPLICA_CANNOT_STAY"]
    assert any("chat: replica 0 of the current plan cannot stay" in message for message in told)
    assert plan.status == "optimal"
    assert plan.current.moves >= 1
    assert plan.current.kept == len(gpus_of(running(folder), "small"))


def test_the_audit_counts_moves_itself(folder):
    overrides = (f"current.plan={folder / 'running.json'}", "current.price_per_move=$3", "deployments.chat.workload.concurrency=140")
    found = answer(str(folder / "problem.yaml"), Options(overrides=overrides))
    loaded, plan = found.loaded, found.plan
    assert plan.current is not None
    assert plan.objective is not None

    def codes(**changed: object) -> set[str]:
        wrong = PlanDocument.model_validate({**json.loads(plan.model_dump_json()), **changed})
        return {item.code for item in audit(loaded.problem, loaded.fabric, loaded.architectures, wrong, loaded.current)}

    assert codes() == set()
    sums = plan.current.model_dump(mode="json")
    for name, value in (("moves", 0), ("kept", 9), ("stopped", 5), ("moves_per_hour", 9.0), ("price_per_move", 1.0), ("over_hours", 2.0)):
        assert codes(current={**sums, name: value}) == {"MOVES_MISMATCH"}
    assert "MOVES_MISMATCH" in codes(current=None)
    cheaper = {**plan.objective.model_dump(mode="json"), "value": plan.cost_per_hour, "bound": plan.cost_per_hour}
    assert codes(objective=cheaper) == {"OBJECTIVE_MISMATCH"}
    deployments = json.loads(plan.model_dump_json())["deployments"]
    for item in deployments:
        for replica in item["replicas"]:
            replica["change"] = "kept"
    assert "MOVES_MISMATCH" in codes(deployments=deployments)


@pytest.mark.parametrize(
    ("override", "code"),
    [
        ("current.plan=nowhere.json", "PLAN_NOT_FOUND"),
        ("objective=latency", "RULES_NOT_TOGETHER"),
        ("deployments.chat.spares=1", "RULES_NOT_TOGETHER"),
        ("current.price_per_move=$3/h", "WRONG_UNIT"),
        ("current.price_per_move=3 EUR", "CURRENCY_MIXED"),
        ("current.over=3", "MISSING_UNIT"),
    ],
)
def test_refuses_what_cannot_be_meant(folder, override, code):
    overrides = [f"current.plan={folder / 'running.json'}", "current.price_per_move=$3", override]
    with pytest.raises(PlannerError) as caught:
        answer(
            str(folder / "problem.yaml"),
            Options(overrides=[text for text in overrides if text.partition("=")[0] != override.partition("=")[0]] + [override]),
        )
    assert code in {item.code for item in caught.value.diagnostics}


@pytest.mark.parametrize(
    ("text", "code"),
    [("{", "PLAN_NOT_READABLE"), ('{"deployments": 3}', "PLAN_NOT_READABLE"), ("twice", "GPU_USED_TWICE")],
)
def test_refuses_a_plan_that_is_none(folder, tmp_path, text, code):
    if text == "twice":
        data = json.loads((folder / "running.json").read_text())
        data["deployments"][0]["replicas"] *= 2
        text = json.dumps(data)
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(PlannerError) as caught:
        answer(str(folder / "problem.yaml"), Options(overrides=(f"current.plan={tmp_path / 'bad.json'}", "current.price_per_move=$3")))
    assert {item.code for item in caught.value.diagnostics} == {code}


def test_the_command_and_diff_show_it(folder, capsys):
    more = ["--set", "deployments.chat.workload.concurrency=140"]
    arguments = ["--set", f"current.plan={folder / 'running.json'}", "--set", "current.price_per_move=$3", *more]
    new = folder / "new.json"
    assert run(["solve", str(folder / "problem.yaml"), *arguments, "-o", str(new)]) == 0
    shown = capsys.readouterr().out
    assert "running plan" in shown
    assert "spread over 24 h" in shown
    assert "kept)" in shown
    assert run(["diff", str(folder / "running.json"), str(new)]) == 0
    assert "at $3.00 once, spread over 24 h" in capsys.readouterr().out
    assert run(["validate", str(folder / "problem.yaml"), str(new), *arguments]) in {0, 2}

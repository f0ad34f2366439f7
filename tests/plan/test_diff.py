"""Differences of plans: what starts, stops, moves and stays, and that the counts add up."""

from __future__ import annotations

import json
import random

import pytest

import planner
from planner.cli.app import run
from planner.plan.diff import RunningReplica, Snapshot, difference

SHIPPED = "problems/two_node_h100.yaml"


def replica(deployment: str = "chat", tp: int = 2, at: str = "a", first: int = 0, batch: int = 8) -> RunningReplica:
    return RunningReplica(
        deployment=deployment,
        model="m",
        engine="vllm",
        gpu="h100",
        tp=tp,
        pp=1,
        ep=1,
        dp=1,
        batch=batch,
        weights_dtype="fp8",
        kv_dtype="fp8",
        ranks=tuple(f"{at}:{first + rank}" for rank in range(tp)),
    )


def plan(*replicas: RunningReplica, cost: float | None = 10.0) -> Snapshot:
    gpus = sum(len(item.ranks) for item in replicas)
    return Snapshot(problem="p", status="optimal", cost_per_hour=cost, currency="USD", gpus=gpus, replicas=replicas)


def test_a_plan_does_not_differ_from_itself():
    same = plan(replica(), replica(first=2), replica("tags", 1, "b"))
    found = difference(same, same)
    assert found.replicas == ()
    assert (found.moves, found.cost_change, found.nodes_opened, found.nodes_emptied) == (0, 0.0, (), ())


def test_the_order_of_replicas_is_no_difference():
    assert difference(plan(replica(), replica(first=2)), plan(replica(first=2), replica())).replicas == ()


def test_starts_stops_and_moves_rank_by_rank():
    found = difference(plan(replica(), replica("tags", 1, "b")), plan(replica(at="c"), replica(tp=4, at="d"), cost=12.5))
    actions = {(change.deployment, change.action) for change in found.replicas}
    assert actions == {("chat", "move"), ("chat", "start"), ("tags", "stop")}
    move = next(change for change in found.replicas if change.action == "move")
    assert [(item.rank, item.before, item.after) for item in move.ranks] == [(0, "a:0", "c:0"), (1, "a:1", "c:1")]
    assert found.cost_change == 2.5
    assert found.nodes_opened == ("c", "d")
    assert found.nodes_emptied == ("a", "b")
    assert found.gpus_after - found.gpus_before == 3


def test_only_the_ranks_that_change_their_gpu_move():
    found = difference(plan(replica(tp=4)), plan(replica(tp=4).model_copy(update={"ranks": ("a:0", "a:1", "a:2", "a:7")})))
    assert [item.rank for item in found.replicas[0].ranks] == [3]


def test_another_batch_is_told_without_a_move():
    found = difference(plan(replica(batch=8)), plan(replica(batch=16)))
    assert [(change.action, change.batch_before, change.batch_after) for change in found.replicas] == [("keep", 8, 16)]
    assert found.moves == 0


def test_another_model_starts_anew():
    found = difference(plan(replica()), plan(replica().model_copy(update={"model": "other"})))
    assert sorted(change.action for change in found.replicas) == ["start", "stop"]


def test_a_plan_without_a_price_has_no_change_of_cost():
    assert difference(plan(replica()), plan(replica(), cost=None)).cost_change is None


@pytest.mark.parametrize("seed", range(30))
def test_every_replica_is_told_once(seed):
    draw = random.Random(seed)

    def drawn() -> Snapshot:
        places = [(node, first) for node in "abcd" for first in (0, 2, 4, 6)]
        chosen = draw.sample(places, draw.randint(0, 10))
        return plan(*(replica(draw.choice(["chat", "tags"]), 2, node, first) for node, first in chosen))

    before, after = drawn(), drawn()
    found = difference(before, after)
    assert sum(row.kept + row.moved + row.stopped for row in found.deployments) == len(before.replicas)
    assert sum(row.kept + row.moved + row.started for row in found.deployments) == len(after.replicas)
    there = {(item.deployment, rank) for item in before.replicas for rank in item.ranks}
    here = {(item.deployment, rank) for item in after.replicas for rank in item.ranks}
    assert found.moves >= len(here - there)
    back = difference(after, before)
    assert sum(row.started for row in back.deployments) == sum(row.stopped for row in found.deployments)
    assert back.cost_change == -found.cost_change


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    for name, load in (("one", 32), ("two", 80)):
        plan_document = planner.solve(SHIPPED, [f"deployments.chat.workload.concurrency={load}"]).plan
        (folder / f"{name}.json").write_text(plan_document.model_dump_json())
    return folder


def test_the_command_tells_it(plans, capsys):
    assert run(["diff", str(plans / "one.json"), str(plans / "two.json")]) == 0
    text = capsys.readouterr().out
    assert "$24.00/h -> $48.00/h   +$24.00/h (+100.0%)" in text
    assert "start chat" in text
    assert "h100-02:0-7" in text
    assert run(["diff", str(plans / "one.json"), str(plans / "two.json"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format_version"] == 1
    assert document["cost_change"] == 24.0
    assert run(["diff", str(plans / "one.json"), str(plans / "one.json")]) == 0
    assert "nothing changes" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["{", "[]", '{"format_version": 1}', "[" * 5000])
def test_what_is_no_plan_is_told(plans, tmp_path, text, capsys):
    path = tmp_path / "no_plan.json"
    path.write_text(text)
    assert run(["diff", str(plans / "one.json"), str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "PLAN_NOT_READABLE" in captured.err

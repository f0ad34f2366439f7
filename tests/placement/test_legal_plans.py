"""Plans of the planner itself pass, as plan.json and as ranks written by hand, and cost nothing more than the optimum."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from planner.answer.answering import answer_loaded
from planner.diagnostics import Severity
from planner.placement.judge import judge
from planner.placement.kinds import read_placement_text
from planner.problem.load import load_problem

PROBLEMS = Path(__file__).parents[2] / "problems"
# Problems that have a plan and are solved in a second or two.
SOLVED = ("two_node_h100", "405b_bf16_four_nodes", "four_gpu_nodes", "mixed_fleet", "one_node_70b_efficiency", "six_a6000", "nvl72_rack")


def by_hand(plan):
    """The same placement as somebody would write it down: degrees, layers per stage, and the GPU of every rank."""
    deployments = []
    for deployment in plan.deployments:
        for replica in deployment.replicas:
            shape = replica.shape
            deployments.append(
                {
                    "name": deployment.name,
                    "tp": shape.tp,
                    "pp": shape.pp,
                    "ep": shape.ep,
                    "dp": shape.dp,
                    "weights": shape.weights_dtype,
                    "kv_cache": shape.kv_dtype,
                    "partition": list(shape.partition),
                    "ranks": [f"{rank.node}:{rank.gpu}" for rank in replica.ranks],
                }
            )
    return json.dumps({"deployments": deployments})


def overrides_of(chance, name):
    """Another load and other lengths for every deployment of a problem."""
    loaded = load_problem(str(PROBLEMS / f"{name}.yaml"))
    found = []
    for asked in loaded.problem.deployments:
        path = f"deployments.{asked.name}.workload"
        found.append(f"{path}.prompt_tokens={chance.randrange(200, asked.workload.prompt_tokens + 1)}")
        if asked.workload.concurrency is not None:
            found.append(f"{path}.concurrency={chance.randrange(1, asked.workload.concurrency + 1)}")
    return found


def check(name, overrides):
    loaded = load_problem(str(PROBLEMS / f"{name}.yaml"), overrides)
    plan = answer_loaded(loaded).plan
    assert plan.deployments
    stored = judge(loaded, read_placement_text(plan.model_dump_json(indent=1), "plan.json", loaded))
    assert stored.proposal.kind == "plan"
    assert stored.valid, [str(item) for item in stored.diagnostics]
    assert not [item for item in stored.diagnostics if item.code.startswith("PLAN_OLDER")]
    written = judge(loaded, read_placement_text(by_hand(plan), "ranks.yaml", loaded))
    assert written.valid, [str(item) for item in written.diagnostics]
    assert written.plan.cost_per_hour == pytest.approx(plan.cost_per_hour)
    return loaded, plan, written


@pytest.mark.parametrize("name", SOLVED)
def test_a_plan_of_the_planner_passes(name):
    """As plan.json every claim holds; by hand the same figures come out of the placement alone."""
    _, plan, written = check(name, ())
    for mine, given in zip(plan.deployments, written.plan.deployments, strict=True):
        for one, other in zip(mine.replicas, given.replicas, strict=True):
            assert other.times.tpot_s <= one.times.tpot_s * 1.000001
            assert other.memory.weights_gib == pytest.approx(one.memory.weights_gib)


@pytest.mark.parametrize("seed", range(2))
def test_random_plans_pass(seed):
    """Problems with another load and other lengths."""
    chance = random.Random(seed)
    name = chance.choice(SOLVED)
    check(name, overrides_of(chance, name))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_plans_pass(seed):
    """The full count of the above."""
    chance = random.Random(seed)
    name = chance.choice(SOLVED)
    check(name, overrides_of(chance, name))


def test_an_older_plan_is_told():
    """A plan of a problem that has changed since is warned of."""
    loaded = load_problem(str(PROBLEMS / "two_node_h100.yaml"))
    plan = answer_loaded(loaded).plan
    changed = load_problem(str(PROBLEMS / "two_node_h100.yaml"), ["deployments.chat.workload.concurrency=31"])
    found = judge(changed, read_placement_text(plan.model_dump_json(), "plan.json", changed)).diagnostics
    assert any(item.code == "PLAN_OLDER_THAN_PROBLEM" and item.severity is Severity.WARNING for item in found)


def test_a_tampered_plan_is_refused():
    """A claim of a plan.json that does not hold is an error at its line."""
    loaded = load_problem(str(PROBLEMS / "two_node_h100.yaml"))
    plan = answer_loaded(loaded).plan.model_dump(mode="json")
    plan["deployments"][0]["replicas"][0]["times"]["tpot_s"] /= 2
    plan["deployments"][0]["replicas"][0]["ranks"][3]["gpu"] = 2
    judgement = judge(loaded, read_placement_text(json.dumps(plan, indent=2), "plan.json", loaded))
    assert {"TIME_MISMATCH", "GPU_USED_TWICE"} <= judgement.codes
    assert all(item.place.line for item in judgement.diagnostics if item.code == "GPU_USED_TWICE")

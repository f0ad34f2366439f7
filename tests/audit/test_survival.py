"""Every failure domain of a resilient plan is killed, one at a time: what is left carries the promised share, by the auditor's arithmetic of loads."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import replace

import pytest

from planner.answer.answering import Answer, Options, answer_loaded
from planner.audit.case import Case
from planner.audit.checks import CHECKS
from planner.plan.document import PlanDocument
from planner.problem.load import load_problem

LOAD = {check.name: check.run for check in CHECKS}["load"]


def problem(seed: int) -> dict[str, object]:
    """One or two small models on a few nodes under leaves and racks, each to survive the loss of a domain."""
    draw = random.Random(seed)
    nodes = [
        {
            "name": f"n{number}",
            "gpu": "h100-sxm-80gb",
            "gpus": draw.choice([2, 4, 8]),
            "nics": {"count": 4, "speed": "400Gb/s"},
            "leaf": f"leaf-{number % 3}",
            "failure_domains": {"rack": f"rack-{draw.randint(0, 2)}", "zone": f"zone-{number % 2}"},
            "price": "$24/h",
        }
        for number in range(draw.randint(3, 6))
    ]
    deployments = [
        {
            "name": name,
            "model": model,
            "workload": {
                "prompt_tokens": 1024,
                "output_tokens": 256,
                **draw.choice([{"concurrency": 8}, {"concurrency": 24}, {"concurrency": 60}, {"request_rate": "6/s"}]),
            },
            "slo": {"tpot": draw.choice(["15ms", "25ms"])},
            "resilience": {
                "lose": draw.choice(["node", "node", "leaf", "rack", "zone", "gpu"]),
                "keep": draw.choice(["100%", "80%", "50%"]),
            },
            **draw.choice([{}, {}, {"spares": 1}, {"spread": {"over": "node", "most": 2}}, {"forbid": ["n0"]}]),
        }
        for name, model in (("small", "llama-3.1-8b"), ("large", "llama-3.1-70b-fp8"))[: draw.choice([1, 2])]
    ]
    topology = {"name": "fleet", "fabric": {"kind": "infiniband"}, "nodes": nodes}
    return {"name": f"survival-{seed}", "topology": topology, "deployments": deployments}


def without(plan: PlanDocument, name: str, lost: set[tuple[str, int]]) -> PlanDocument:
    """The plan when every replica of a deployment with a GPU among the lost ones is gone."""
    deployments = []
    for item in plan.deployments:
        left = tuple(r for r in item.replicas if item.name != name or not lost & {(rank.node, rank.gpu) for rank in r.ranks})
        deployments.append(item.model_copy(update={"replicas": left, "capacity": math.fsum(replica.capacity for replica in left)}))
    return plan.model_copy(update={"deployments": tuple(deployments)})


def asking(found: Answer, name: str, share: float):
    """The same problem when one deployment asks only a share of its load, and the others nothing of note."""
    deployments = []
    for item in found.loaded.problem.deployments:
        mine, load, rate = item.name == name, item.workload.concurrency, item.workload.request_rate
        asked = (
            {"concurrency": math.ceil(round(share * load, 9)) if mine else 1}
            if load
            else {"request_rate": (share if mine else 1e-6) * rate}
        )
        deployments.append(item.model_copy(update={"workload": item.workload.model_copy(update=asked), "resilience": None}))
    return found.loaded.problem.model_copy(update={"deployments": tuple(deployments)})


def assert_survives(found: Answer) -> Counter[str]:
    """Kill every domain that something of a deployment stands in; give how many of each kind were killed."""
    fabric, killed = found.loaded.fabric, Counter[str]()
    for deployment in found.loaded.problem.deployments:
        rule = deployment.resilience
        assert rule is not None
        domains: dict[object, set[tuple[str, int]]] = {}
        for item in found.plan.deployments:
            for rank in (rank for replica in item.replicas for rank in replica.ranks):
                key = (rank.node, rank.gpu) if rule.lose == "gpu" else fabric.failure_domains(rank.node)[rule.lose]
                domains.setdefault(key, set()).add((rank.node, rank.gpu))
        for lost in domains.values():
            case = Case(
                asking(found, deployment.name, rule.keep), fabric, found.loaded.architectures, without(found.plan, deployment.name, lost)
            )
            mine = [
                str(item) for item in LOAD(case) if item.code == "LOAD_NOT_COVERED" and item.place and deployment.name in item.place.path
            ]
            assert mine == []
            killed[rule.lose] += 1
    return killed


def solved(seed: int, tmp_path) -> Answer:
    path = tmp_path / f"{seed}.json"
    path.write_text(json.dumps(problem(seed)), encoding="utf-8")
    found = answer_loaded(load_problem(str(path)), Options(explain=False))
    assert found.audit_errors == ()
    return found


def assert_all_survive(seeds: range, tmp_path, least: int) -> None:
    found = [item for item in (solved(seed, tmp_path) for seed in seeds) if item.plan.deployments]
    assert len(found) >= least
    killed = sum(map(assert_survives, found), Counter[str]())
    assert killed.total() >= 3 * least
    assert set(killed) <= {"gpu", "node", "leaf", "rack", "zone"}
    assert len(killed) >= min(5, least)


def test_a_sample_of_resilient_plans(tmp_path):
    assert_all_survive(range(3), tmp_path, 2)


@pytest.mark.thorough
def test_many_resilient_plans(tmp_path):
    assert_all_survive(range(100, 160), tmp_path, 15)


def test_a_plan_that_promises_nothing_does_not_survive(tmp_path):
    """The test itself can fail: without the rule all replicas stand in one node, and its loss leaves nothing."""
    text = problem(0)
    first = {**text["deployments"][0], "replicas": {"max": 1}}
    rule = first.pop("resilience")
    path = tmp_path / "one.json"
    path.write_text(json.dumps({**text, "deployments": [first]}), encoding="utf-8")
    found = answer_loaded(load_problem(str(path)), Options(explain=False))
    assert found.plan.deployments
    path.write_text(json.dumps({**text, "deployments": [{**first, "resilience": rule | {"keep": "50%"}}]}), encoding="utf-8")
    with pytest.raises(AssertionError, match="LOAD_NOT_COVERED"):
        assert_survives(replace(found, loaded=load_problem(str(path))))

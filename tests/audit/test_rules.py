"""Checks of the rules about places: right plans pass, and a harder question is not answered by the same plan."""

from __future__ import annotations

import pytest

from planner.audit.case import Case
from planner.audit.checks import CHECKS
from tests.audit.scenarios import cases

RUN = {check.name: check.run for check in CHECKS}
CASES = {case.name: case for case in cases()}


def codes(check, scenario, **changes):
    """Codes that a check reports about a scenario's plan when its first deployment asks for something more."""
    case = CASES[scenario]
    first, *rest = case.problem.deployments
    asked = type(first).model_validate({**first.model_dump(), **changes})
    problem = case.problem.model_copy(update={"deployments": (asked, *rest)})
    return [diagnostic.code for diagnostic in RUN[check](Case(problem, case.fabric, case.architectures, case.plan))]


@pytest.mark.parametrize(
    ("check", "scenario", "kept", "broken", "code"),
    [
        # Two replicas of TP4 carry 32 each; the scenario's node holds both.
        ("spread", "dense-one-domain", {"spread": {"over": "node", "most": 2}}, {"spread": "node"}, "SPREAD_NOT_KEPT"),
        ("spread", "dense-one-domain", {"spread": {"over": "leaf", "most": 2}}, {"spread": "leaf"}, "SPREAD_NOT_KEPT"),
        ("resilience", "dense-one-domain", {"resilience": {"lose": "gpu", "keep": "50%"}}, {"resilience": "gpu"}, "NOT_RESILIENT"),
        ("resilience", "dense-one-domain", {}, {"resilience": {"lose": "leaf", "keep": "1%"}}, "NOT_RESILIENT"),
    ],
)
def test_pair(check, scenario, kept, broken, code):
    assert codes(check, scenario, **kept) == []
    assert code in codes(check, scenario, **broken)


def test_every_loss_is_judged_by_itself():
    """A replica on one of the other node's GPUs too is lost with either node: one diagnostic for each."""
    found = codes("resilience", "latent-attention-data-parallel", resilience={"lose": "node", "keep": "100%"})
    assert set(found) == {"NOT_RESILIENT"}
    assert len(found) >= 2


def test_unserved_load_is_told_and_allowed():
    case = CASES["dense-one-domain"]
    load = case.plan.deployments[0].load
    asked = case.problem.deployments[0]
    longer = {**asked.workload.model_dump(), "concurrency": int(2 * load)}
    answer = case.plan.deployments[0]
    told = case.plan.model_copy(update={"deployments": (answer.model_copy(update={"load": 2 * load, "unserved": load}),)})
    silent = case.plan.model_copy(update={"deployments": (answer.model_copy(update={"load": 2 * load}),)})

    def found(plan, part, check="priority"):
        changed = type(asked).model_validate({**asked.model_dump(), "workload": longer, "may_go_unserved": part})
        problem = case.problem.model_copy(update={"deployments": (changed,)})
        return [diagnostic.code for diagnostic in RUN[check](Case(problem, case.fabric, case.architectures, plan))]

    assert found(told, "50%") == []
    assert found(told, "50%", "load") == []
    assert found(told, "40%") == ["LOAD_NOT_COVERED"]
    assert found(told, "0%", "load") == ["LOAD_NOT_COVERED"]
    assert found(silent, "50%") == ["UNSERVED_MISMATCH"]


def test_gpus_that_may_be_used():
    """The scenario's plan uses GPUs of h100-01 alone."""
    assert codes("pin", "dense-one-domain", pin=["h100-01"]) == []
    assert codes("pin", "dense-one-domain", forbid=["h100-02"]) == []
    assert set(codes("pin", "dense-one-domain", pin=["h100-02"])) == {"GPU_NOT_PINNED"}
    assert codes("pin", "dense-one-domain", forbid=["h100-01:0"]) == ["GPU_FORBIDDEN"]

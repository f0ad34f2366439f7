"""Targets at a percentile: judged by seeded draws, never looser than the mean, told in the plan and audited."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.answer.answering import Answer, Options, answer
from planner.audit.audit import audit

PROBLEM = str(Path(__file__).parents[2] / "problems" / "two_node_h100.yaml")


def answered(*overrides: str) -> Answer:
    """Answer with a loose first token, whose wait has a long tail of its own."""
    return answer(PROBLEM, Options(overrides=("deployments.chat.slo.ttft=10s", *overrides)))


def test_a_percentile_is_told_and_audited():
    found = answered("deployments.chat.slo.percentile=99")
    (replica,) = found.plan.deployments[0].replicas
    assert found.audit_errors == ()
    assert replica.tail is not None
    assert replica.tail.percentile == 99
    assert replica.times.tpot_s < replica.tail.tpot_s <= 0.060
    assert replica.times.ttft_s < replica.tail.ttft_s <= 10.0


def test_without_a_percentile_the_mean_counts():
    (replica,) = answered().plan.deployments[0].replicas
    assert replica.tail is None


def test_the_same_seed_draws_the_same():
    first, second = (answered("deployments.chat.slo.percentile=99").plan.model_dump_json() for _ in range(2))
    assert first == second


def test_a_target_between_mean_and_percentile_is_missed_by_the_percentile_only():
    (replica,) = answered("deployments.chat.slo.percentile=99", "deployments.chat.parallelism={tp: 8, pp: 1}").plan.deployments[0].replicas
    assert replica.tail is not None
    between = (replica.times.tpot_s + replica.tail.tpot_s) / 2
    target = f"deployments.chat.slo.tpot={between * 1e3:.4f}ms"
    fixed = "deployments.chat.parallelism={tp: 8, pp: 1}"
    by_mean = answered(target, fixed)
    by_tail = answered(target, fixed, "deployments.chat.slo.percentile=99")
    assert by_mean.plan.deployments[0].replicas[0].shape.batch == 32
    assert len(by_mean.plan.deployments[0].replicas) == 1
    assert by_tail.plan.status == "infeasible" or by_tail.plan.deployments[0].replicas[0].shape.batch < 32


@pytest.mark.parametrize("change", [{"tail": None}, {"tail": "lowered"}])
def test_the_audit_catches_a_percentile_that_is_missing_or_lowered(change):
    found = answered("deployments.chat.slo.percentile=99")
    deployment = found.plan.deployments[0]
    (replica,) = deployment.replicas
    tail = None if change["tail"] is None else replica.tail.model_copy(update={"tpot_s": replica.tail.tpot_s * 0.9})
    mutated = found.plan.model_copy(
        update={"deployments": (deployment.model_copy(update={"replicas": (replica.model_copy(update={"tail": tail}),)}),)}
    )
    codes = {item.code for item in audit(found.loaded.problem, found.loaded.fabric, found.loaded.architectures, mutated)}
    assert "TIME_MISMATCH" in codes

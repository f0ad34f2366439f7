"""Loads in buckets: the published example, targets and other objectives, and the cost model in place of measured figures."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from planner.answer.answering import Answer, Options, answer
from planner.diagnostics import PlannerError

ROOT = Path(__file__).parents[2]
TOY = ROOT / "problems/melange_toy.yaml"

BY_MODEL = f"""\
name: by-model
topology: {ROOT / "topologies/one_node_h100.yaml"}
deployments:
  - name: small
    model: llama-3.1-8b
    workload:
      request_rate: 20/s
      buckets:
        - {{prompt_tokens: 500, output_tokens: 200, share: 70%}}
        - {{name: long, prompt_tokens: 8000, output_tokens: 500, share: 30%}}
    slo: {{tpot: 30ms, ttft: 2s}}
objective: cost
"""


@cache
def toy(*overrides: str) -> Answer:
    return answer(str(TOY), Options(overrides=overrides))


def written(folder: Path, text: str, *overrides: str) -> Answer:
    path = folder / "problem.yaml"
    path.write_text(text.replace("../topologies", str(ROOT / "topologies")), encoding="utf-8")
    return answer(str(path), Options(overrides=overrides))


def count(found: Answer, gpu: str) -> int:
    return sum(replica.shape.gpu == gpu for replica in found.plan.deployments[0].replicas)


def by_bucket(found: Answer) -> dict[str, float]:
    loads: dict[str, float] = {}
    for replica in found.plan.deployments[0].replicas:
        for item in replica.buckets:
            loads[item.name] = loads.get(item.name, 0.0) + item.load
    return loads


def test_the_published_optimum():
    """Three A10G and one A100 at $6.70/h, as the solver's README prints it, and proved; the A100 takes three buckets whole."""
    found = toy()
    assert found.audit_errors == ()
    assert found.plan.status == "optimal"
    assert found.plan.objective.bound == pytest.approx(6.70)
    assert (count(found, "a10g-24gb"), count(found, "a100-sxm-80gb")) == (3, 1)
    assert by_bucket(found) == pytest.approx({"short-short": 6, "short-long": 3, "long-short": 15, "long-long": 6})
    (whole,) = (replica for replica in found.plan.deployments[0].replicas if replica.shape.gpu == "a100-sxm-80gb")
    assert len(whole.buckets) == 3
    assert sum(item.fraction for item in whole.buckets) <= 1


def test_buckets_that_may_be_split_cost_less():
    found = toy("deployments.chat.workload.slices=5040")
    assert found.plan.cost_per_hour == pytest.approx(1.01 + 3.67)
    assert by_bucket(found) == pytest.approx({"short-short": 6, "short-long": 3, "long-short": 15, "long-long": 6})


def test_one_type_alone_is_dearer():
    """The figures add up to 1.125 A100, hence two; as A10G they are twelve, of which there are ten."""
    assert toy("budget.gpus={a10g-24gb: 0}").plan.cost_per_hour == pytest.approx(2 * 3.67)
    assert toy("budget.gpus={a100-sxm-80gb: 0}").plan.status == "infeasible"


def test_measured_times_are_held_to_the_targets(tmp_path):
    slow = TOY.read_text(encoding="utf-8").replace("{gpu: a10g-24gb, ", "{gpu: a10g-24gb, tpot: 80ms, ")
    found = written(tmp_path, slow, "deployments.chat.slo.tpot=50ms")
    assert found.audit_errors == ()
    assert count(found, "a10g-24gb") == 0
    missed = {(item.code, item.bucket) for item in found.plan.rejected if item.shape.gpu == "a10g-24gb"}
    assert {("TPOT_MISSED", "short-short"), ("TPOT_MISSED", "long-long")} <= missed


def test_a_bucket_of_figure_0_is_served_elsewhere(tmp_path):
    text = TOY.read_text(encoding="utf-8").replace("long-short: 5/s", "long-short: 0")
    found = written(tmp_path, text)
    served = {item.name for replica in found.plan.deployments[0].replicas if replica.shape.gpu == "a10g-24gb" for item in replica.buckets}
    assert "long-short" not in served
    assert found.audit_errors == ()


def test_the_most_load_within_a_budget(tmp_path):
    """One A100 alone is full at 8 / 9 of the load, wherever its buckets come from."""
    text = (
        TOY.read_text(encoding="utf-8")
        .replace("      slices: 1\n", "")
        .replace("objective: cost", "objective: throughput\nbudget: {per_hour: $4/h}")
    )
    found = written(tmp_path, text)
    assert found.audit_errors == ()
    assert found.plan.objective.value == pytest.approx(8 / 9, abs=1e-3)


def test_what_does_not_fit_goes_unserved():
    found = toy("budget.gpus={a10g-24gb: 0, a100-sxm-80gb: 1}", "deployments.chat.may_go_unserved=true")
    assert found.audit_errors == ()
    assert found.plan.deployments[0].unserved == pytest.approx(3)


def test_the_cost_model_gives_figures_where_there_are_none(tmp_path):
    found = written(tmp_path, BY_MODEL)
    assert found.audit_errors == ()
    assert by_bucket(found) == pytest.approx({"500-200": 14, "long": 6})
    for replica in found.plan.deployments[0].replicas:
        for item in replica.buckets:
            assert item.times.tpot_s <= 0.030
            assert item.capacity == pytest.approx(item.throughput_tokens_s / item.output_tokens)
    short, long = (next(b for r in found.plan.deployments[0].replicas for b in r.buckets if b.name == name) for name in ("500-200", "long"))
    assert short.capacity > long.capacity


def test_a_bucket_that_no_shape_serves_within_the_targets_says_so(tmp_path):
    found = written(tmp_path, BY_MODEL.replace("ttft: 2s", "ttft: 100ms"))
    assert found.plan.status == "infeasible"
    assert {item.bucket for item in found.plan.rejected if item.code == "TTFT_MISSED"} >= {"long"}


def test_a_front_is_refused():
    with pytest.raises(PlannerError) as caught:
        answer(str(TOY), Options(pareto="tpot"))
    assert [fault.code for fault in caught.value.diagnostics] == ["RULES_NOT_TOGETHER"]

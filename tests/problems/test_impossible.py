"""Problems without a plan: the command says what would help, and doing so helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.answer.answering import Answer, Options, answer
from planner.cli.app import run

ROOT = Path(__file__).parents[2]
PATH = str(ROOT / "problems/two_node_h100.yaml")


def refused(*overrides: str, path: str = PATH) -> Answer:
    found = answer(path, Options(overrides))
    assert found.plan.status == "infeasible"
    return found


def repairs(found: Answer) -> dict[str, str]:
    return {item.code: f"{item.message}: {item.hint}" for item in found.plan.repairs}


def test_gpus_to_free_are_named_though_no_shape_fits_yet(capsys):
    """Six and two of eight GPUs are free: two more in the first node are enough."""
    path = str(ROOT / "problems/eight_free_as_6_plus_2.yaml")
    assert run(["solve", path]) == 3
    told = capsys.readouterr()
    assert "would help, each alone" in told.out
    assert "2 more free GPUs would do: free 2 in h100-01/nvlink, which has 6 free" in told.out
    assert "add 1 node of h100-sxm-80gb, $24.00/h" in told.out
    assert "NOT_ENOUGH_GPUS" not in told.err
    assert answer(path, Options(["topology.taken=['h100-02:[2-7]']"])).plan.status == "optimal"


@pytest.mark.parametrize(
    ("asked", "code", "path"),
    [("tpot=20ms", "TPOT_MISSED", "deployments.chat.slo.tpot"), ("ttft=100ms", "TTFT_MISSED", "deployments.chat.slo.ttft")],
)
def test_a_target_that_could_be_met_is_met_and_a_shorter_one_is_not(asked, code, path):
    found = refused(f"deployments.chat.slo.{asked}")
    said = repairs(found)[code]
    named = said.rpartition(": ")[2].rstrip("}`")
    assert answer(PATH, Options([f"{path}={named}"])).plan.status == "optimal"
    shorter = 0.98 * float(named.rstrip("ms"))
    assert answer(PATH, Options([f"{path}={shorter}{named.lstrip('0123456789.')}"], explain=False)).plan.status == "infeasible"


def test_an_efficiency_that_could_be_reached():
    path = str(ROOT / "problems/one_node_70b_efficiency.yaml")
    said = repairs(refused("deployments.assistant.min_efficiency=99%", path=path))["EFFICIENCY_TOO_LOW"]
    percent = int(said.rpartition(": ")[2].strip("`%"))
    assert answer(path, Options([f"deployments.assistant.min_efficiency={percent}%"])).plan.status == "optimal"
    assert answer(path, Options([f"deployments.assistant.min_efficiency={percent + 1}%"], explain=False)).plan.status == "infeasible"


def test_a_load_that_could_be_served():
    said = repairs(refused("deployments.chat.workload.concurrency=400"))
    share = float(said["LOAD_NOT_COVERED"].split(" % ")[0].rpartition(" ")[2])
    assert answer(PATH, Options([f"deployments.chat.workload.concurrency={int(4 * share)}"])).plan.status == "optimal"
    more = Options([f"deployments.chat.workload.concurrency={int(4 * (share + 0.1)) + 1}"], explain=False)
    assert answer(PATH, more).plan.status == "infeasible"


def test_a_budget_is_rounded_up():
    said = repairs(refused("budget={per_hour: $20/h}"))
    assert said == {"BUDGET_EXCEEDED": "the cheapest plan costs $24.00/h, the budget is $20.00/h: raise the budget to $24.00/h"}


def test_json_has_what_would_help(capsys):
    assert run(["solve", PATH, "--set", "budget={per_hour: $20/h}", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert [item["code"] for item in told["repairs"]] == ["BUDGET_EXCEEDED"]
    assert told["repairs"][0] in told["diagnostics"]

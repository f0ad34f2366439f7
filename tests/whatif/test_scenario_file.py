"""Scenario files: what they hold, and where they are wrong."""

from __future__ import annotations

import pytest

from planner.diagnostics import PlannerError
from planner.whatif.patching import open_base, patched
from planner.whatif.scenario_file import read_scenario_file

TEXT = """
scenarios:
  - {name: twice the load, set: {load: x2}}
  - {name: without a node, lose: h100-02}
  - set: {deployments.chat.precision: {weights: fp8}, deployments.chat.engine: {name: vllm, version: "0.11"}}
grids:
  - name: prices
    fixed: {deployments.tags.load: x2}
    set: {prices: [x1, +20%], deployments.chat.load: [x1, x2, x3]}
questions: {max_load: chat, growth: 5%/month}
"""


def read(tmp_path, text):
    path = tmp_path / "scenarios.yaml"
    path.write_text(text)
    return read_scenario_file(str(path))


def test_scenarios_grids_and_questions(tmp_path, fleet):
    scenarios, questions = read(tmp_path, TEXT)
    assert len(scenarios) == 3 + 6
    assert scenarios[0].name == "twice the load"
    assert scenarios[3].name == "prices: prices=x1, deployments.chat.load=x1"
    assert questions.max_load == ("chat",)
    assert questions.growth == "5%/month"
    base = open_base(fleet)
    assert all(patched(base, scenario).sha256 for scenario in scenarios)
    assert patched(base, scenarios[2]).problem.deployments[0].precision.weights == "fp8"
    assert patched(base, scenarios[-1]).problem.deployments[1].workload.request_rate == 40


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("scenarios: [{nam: x}]", "UNKNOWN_KEY"),
        ("scenarios: 3", "WRONG_TYPE"),
        ("[1, 2]", "ROOT_NOT_MAPPING"),
        ("scenarios: [{set: {load: x2}}]\nscenarios: []", "DUPLICATE_KEY"),
    ],
)
def test_a_wrong_file_is_told_with_its_place(tmp_path, text, code):
    with pytest.raises(PlannerError) as caught:
        read(tmp_path, text)
    assert code in {item.code for item in caught.value.diagnostics}
    assert all(item.place is not None and item.place.file.endswith("scenarios.yaml") for item in caught.value.diagnostics)


def test_a_fault_of_a_scenario_is_told_where_it_is_written(tmp_path, fleet):
    scenarios, _ = read(tmp_path, "scenarios:\n  - {name: typo, set: {deployments.chat.lod: x2}}\n")
    with pytest.raises(PlannerError) as caught:
        patched(open_base(fleet), scenarios[0])
    fault = caught.value.diagnostics[0]
    assert fault.place.line == 2
    assert "typo" in fault.message

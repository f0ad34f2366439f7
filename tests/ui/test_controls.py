"""What the page may move, and that nothing else of a request is looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from planner.diagnostics import PlannerError
from planner.ui.controls import controls_of
from planner.whatif.patching import open_base, patched
from planner.whatif.scenarios import Change, Scenario

ROOT = Path(__file__).parents[2]
BASE = open_base(str(ROOT / "problems/two_node_h100.yaml"))
CONTROLS = controls_of(BASE)
SLIDERS = [slider for _, group in CONTROLS.sliders for slider in group]
JSON = some.recursive(
    some.none() | some.booleans() | some.floats() | some.integers() | some.text(),
    lambda inner: (
        some.lists(inner, max_size=4) | some.dictionaries(some.sampled_from(["values", "lose", "prices"]) | some.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "problems").glob("*.yaml")))
def test_every_bound_of_every_slider_is_a_problem(name):
    """Each slider at either end gives a problem that loads, or a fault that says why not; at its own value nothing changes."""
    base = open_base(str(ROOT / "problems" / f"{name}.yaml"))
    controls = controls_of(base)
    sliders = [slider for _, group in controls.sliders for slider in group]
    assert {"prices"} < {slider.path for slider in sliders}
    assert controls.changes({"values": {slider.path: slider.value for slider in sliders}}) == ()
    for slider in sliders:
        assert slider.low <= slider.value <= slider.high
        for value in (slider.low, slider.high):
            changes = controls.changes({"values": {slider.path: value}})
            faults = set()
            try:
                loaded = patched(base, Scenario("", changes))
            except PlannerError as error:
                faults = {item.code for item in error.diagnostics}
            assert faults <= {"NO_NODES", "UNKNOWN_NODE"}
            assert faults or value == slider.value or loaded.sha256 != base.loaded.sha256


def test_moves_are_changes_in_the_problems_own_words():
    """Numbers get the unit of their key."""
    asked = {"values": {"deployments.chat.slo.tpot": 45.5, "deployments.chat.workload.concurrency": 64, "prices": -20}, "lose": ["h100-02"]}
    assert set(CONTROLS.changes(asked)) == {
        Change("deployments.chat.slo.tpot", "45.5ms"),
        Change("deployments.chat.workload.concurrency", "64"),
        Change("prices", "-20%"),
        Change("lose", "h100-02"),
    }


@pytest.mark.parametrize(
    "asked",
    [
        [],
        None,
        {"topology": "/etc/hosts"},
        {"values": []},
        {"lose": "h100-01"},
        {"values": {"topology": 1}},
        {"values": {"deployments.chat.model": "../../secret.json"}},
        {"values": {"prices": "20"}},
        {"values": {"prices": True}},
        {"values": {"prices": float("nan")}},
        {"values": {"prices": 201}},
        {"values": {"deployments.chat.workload.concurrency": 0}},
        {"lose": ["h100-03"]},
        {"lose": [["h100-01"]]},
    ],
    ids=str,
)
def test_anything_else_is_refused(asked):
    """Names, types, bounds: each fault with what to send."""
    with pytest.raises(PlannerError) as refused:
        CONTROLS.changes(asked)
    assert {item.code for item in refused.value.diagnostics} == {"UI_REQUEST_INVALID"}
    assert all(item.hint for item in refused.value.diagnostics)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_any_json_is_taken_or_refused(asked):
    """No other exception, and no change of a path that is no slider's."""
    try:
        changes = CONTROLS.changes(json.loads(json.dumps(asked)))
    except PlannerError:
        return
    assert {change.path for change in changes} <= {slider.path for slider in SLIDERS} | {"lose"}

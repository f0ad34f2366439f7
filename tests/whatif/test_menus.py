"""Menus from memory are the menus that would be evaluated, whatever was asked before."""

from __future__ import annotations

import random

import pytest

from planner.candidates.menu import build_menu
from planner.whatif.menus import MenuMemory
from planner.whatif.patching import open_base, patched
from planner.whatif.scenarios import Change, Scenario

CHANGES = [
    ("load", ["x1", "x1.5", "x4"]),
    ("prices", ["x1", "+20%"]),
    ("deployments.chat.slo.tpot", ["50ms", "30ms"]),
    ("deployments.chat.precision", ["{weights: fp8}", "{weights: bf16}"]),
    ("deployments.tags.workload.prompt_tokens", ["512", "900"]),
    ("deployments.chat.min_efficiency", ["10%", "60%"]),
    ("lose", ["h100-02", "a100-01:3"]),
    ("nodes.a100-[01-02].count", ["0", "1", "4"]),
    ("deployments.chat.model", ["qwen3-32b", "llama-3.1-70b"]),
    ("objective", ["cost", "latency", "gpus"]),
    ("profile", ["hockney", "calibrated"]),
    ("deployments.chat.headroom", ["0", "10%"]),
]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough), pytest.param(3, marks=pytest.mark.thorough)])
def test_remembered_menus_are_evaluated_menus(fleet, seed):
    base, memory, draw = open_base(fleet), MenuMemory(), random.Random(seed)
    for _ in range(12):
        chosen = draw.sample(CHANGES, draw.randint(1, 3))
        loaded = patched(base, Scenario("drawn", tuple(Change(path, draw.choice(values)) for path, values in chosen)))
        remembered, evaluated = build_menu(loaded, evaluator=memory.evaluate), build_menu(loaded)
        assert remembered.shapes == evaluated.shapes
        assert remembered.rejected == evaluated.rejected
        assert remembered.loads == evaluated.loads
    assert memory.reused > 0


def test_prices_and_failures_evaluate_nothing_anew(fleet):
    base, memory = open_base(fleet), MenuMemory()
    build_menu(base.loaded, evaluator=memory.evaluate)
    first = memory.evaluated
    for change in (Change("prices", "+20%"), Change("lose", "h100-02:5")):
        build_menu(patched(base, Scenario("again", (change,))), evaluator=memory.evaluate)
    assert memory.evaluated == first

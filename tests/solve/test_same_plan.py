"""The same problem gives the same plan, byte for byte, whatever else the machine does."""

from __future__ import annotations

import hashlib
import json

import pytest

from benchmarks import same_plan
from benchmarks.fleet_problem import problem

TWO_NODES = str(same_plan.ROOT / "problems" / "two_node_h100.yaml")


def test_an_answer_is_told_by_all_that_is_printed(monkeypatch):
    """Answers that differ in one byte, or in their exit code, are two."""
    printed = iter([(b"a", 0), (b"a", 0), (b"b", 0), (b"a", 3)])

    class Done:
        def __init__(self, stdout, returncode):
            self.stdout, self.returncode = stdout, returncode

    monkeypatch.setattr(same_plan.subprocess, "run", lambda *_, **__: Done(*next(printed)))
    found = same_plan.plans("any.yaml", 4, 0)
    assert found[hashlib.sha256(b"a").hexdigest(), 0] == 2
    assert len(found) == 3


@pytest.mark.thorough
def test_a_shipped_problem_gives_one_plan_alone_and_beside_busy_cores():
    alone, beside = same_plan.plans(TWO_NODES, 3, 0), same_plan.plans(TWO_NODES, 3, 2)
    assert len(alone + beside) == 1
    assert {code for _, code in alone} == {0}


@pytest.mark.thorough
def test_a_fleet_gives_one_plan_alone_and_beside_busy_cores(tmp_path):
    path = tmp_path / "fleet.json"
    path.write_text(json.dumps(problem(256, 4, 1)), encoding="utf-8")
    alone, beside = same_plan.plans(str(path), 2, 0), same_plan.plans(str(path), 2, 2)
    assert len(alone + beside) == 1

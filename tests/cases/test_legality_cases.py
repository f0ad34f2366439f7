"""Real reports of layouts that were refused, that broke, or that were refused wrongly."""

from __future__ import annotations

import pytest

from planner.candidates.legality import legal_tensor_parallel, violations
from planner.catalog.gpus import gpu
from planner.diagnostics import Severity, errors
from tests.cases import reading

CASES = reading.table("legality.yaml")
PROPOSALS = [(case, proposal) for case in CASES for proposal in case["proposals"]]


def judged(case, proposal):
    architecture = reading.architecture_of(case)
    return violations(
        architecture,
        reading.precision_of(case, architecture),
        reading.engine_of(case),
        gpu(case["gpu"]),
        reading.degrees_of(proposal),
    )


@pytest.mark.parametrize(
    ("case", "proposal"), PROPOSALS, ids=[f"{case['source']}-{case['engine']}-{reading.degrees_of(item)}" for case, item in PROPOSALS]
)
def test_the_reported_outcome_is_the_verdict(case, proposal):
    """A layout that failed has an error for each reason of the report, one that ran has none."""
    found = judged(case, proposal)
    broken = {item.code for item in errors(found)}
    if proposal["codes"]:
        assert set(proposal["codes"]) <= broken, (case["title"], [str(item) for item in found])
    else:
        assert not broken, (case["title"], [str(item) for item in found])
    warned = {item.code for item in found if item.severity is Severity.WARNING}
    assert set(proposal.get("warnings", ())) <= warned


@pytest.mark.parametrize(
    "case", [case for case in CASES if any("matrices" in item for item in case["proposals"])], ids=lambda case: case["source"]
)
def test_the_offending_matrices_are_named(case):
    """The sentence names the matrix that breaks, which is seldom the first one that people suspect."""
    for proposal in case["proposals"]:
        words = [item.message for item in errors(judged(case, proposal))]
        for matrix in proposal.get("matrices", ()):
            assert any(message.startswith(matrix) for message in words), (matrix, words)


@pytest.mark.parametrize("case", [case for case in CASES if "legal_tp" in case], ids=lambda case: case["source"])
def test_the_legal_degrees_are_those_of_the_report(case):
    """All legal tensor-parallel degrees up to 16, no more and no fewer."""
    architecture = reading.architecture_of(case)
    question = architecture, reading.precision_of(case, architecture), reading.engine_of(case), gpu(case["gpu"])
    assert list(legal_tensor_parallel(*question, limit=16)) == case["legal_tp"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['source']}-{case['engine']}")
def test_every_error_carries_its_arithmetic_a_way_out_and_its_source(case):
    """A refusal shows numbers, says what would be legal, and names the public document of the rule."""
    for proposal in case["proposals"]:
        for item in errors(judged(case, proposal)):
            assert any(character.isdigit() for character in item.message)
            assert "(rule: " in item.hint
            assert len(item.hint.split("(rule:")[0].strip()) > 3

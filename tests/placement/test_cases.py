"""Real reports, given to validate as the files that people had: each gets the verdict of what happened, under the right codes."""

from __future__ import annotations

import pytest

from planner.diagnostics import Severity
from tests.placement.cases_read import table, verdict

CASES = [*table("engines.yaml"), *table("fleets.yaml")]


def codes(judgement, severity):
    return {item.code for item in judgement.diagnostics if item.severity is severity}


@pytest.mark.parametrize("case", CASES, ids=[f"{case['source']}-{case['title']}" for case in CASES])
def test_the_verdict_is_that_of_the_report(case, tmp_path):
    """What broke is refused for the reasons of the report; what ran is not."""
    judgement = verdict(case, tmp_path)
    told = [str(item) for item in judgement.diagnostics]
    if case.get("runs"):
        assert judgement.valid, told
    elif "refused_any" in case:
        assert judgement.codes & set(case["refused_any"]), told
    else:
        assert set(case["refused"]) <= judgement.codes, told
    assert set(case.get("warns", ())) <= codes(judgement, Severity.WARNING), told
    assert set(case.get("notes", ())) <= codes(judgement, Severity.NOTE), told
    assert not set(case.get("silent", ())) & {item.code for item in judgement.diagnostics}, told
    if "hint" in case:
        assert any(case["hint"] in item.hint for item in judgement.diagnostics), told


@pytest.mark.parametrize("case", [case for case in CASES if "runs" not in case], ids=lambda case: case["title"])
def test_every_error_has_figures_a_place_and_a_repair(case, tmp_path):
    """An error says how much, where, and what to do instead."""
    for item in verdict(case, tmp_path).diagnostics:
        if item.severity is Severity.ERROR:
            assert any(letter.isdigit() for letter in item.message), item
            assert item.hint, item
            assert item.place is not None, item
            assert item.place.file == "placement" or item.place.path.startswith("--"), item

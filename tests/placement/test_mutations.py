"""A legal placement passes; broken in one way or in several at once, each way is reported under its code."""

from __future__ import annotations

import random

import pytest

from planner.diagnostics import errors
from planner.plan.diff import plan_difference
from planner.report.placement import placement_lines
from tests.placement.fleet import fresh, judged
from tests.placement.mutations import MUTATIONS, compatible


def test_the_placement_is_legal_before_it_is_broken(tmp_path):
    """Nothing stands against the placement that the mutations start from."""
    judgement = judged(*fresh(), tmp_path)
    assert judgement.valid, [str(item) for item in judgement.diagnostics]
    assert judgement.plan.cost_per_hour == pytest.approx(20 * 3.0)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.code}-{mutation.part}")
def test_each_way_to_break_it_has_its_code_and_place(mutation, tmp_path):
    """One mutation: the code is among the errors, with the line it stands in."""
    problem, placement = fresh()
    mutation.break_it(random.Random(mutation.code), problem, placement)
    found = [item for item in errors(judged(problem, placement, tmp_path).diagnostics) if item.code == mutation.code]
    assert found
    assert all(item.place.file == "placement.json" for item in found)
    assert all(item.place.line is not None for item in found if item.code != "BUDGET_EXCEEDED")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.code}-{mutation.part}")
def test_what_is_broken_is_still_set_beside_a_plan(mutation, tmp_path):
    """Ranks too few, unknown nodes, odd degrees: the verdict is printed whole, with the moves to the plan."""
    problem, placement = fresh()
    legal = judged(problem, placement, tmp_path)
    mutation.break_it(random.Random(mutation.code), problem, placement)
    judgement = judged(problem, placement, tmp_path)
    moves = plan_difference(judgement.plan, legal.plan)
    assert moves.gpus_after == 20
    assert any(mutation.code in line for line in placement_lines(judgement, {}, notes=True))


def broken(seed, folder):
    """Codes expected and codes found of several mutations at once."""
    chance = random.Random(seed)
    problem, placement = fresh()
    chosen = []
    for mutation in chance.sample(MUTATIONS, len(MUTATIONS)):
        if len(chosen) < 2 + seed % 4 and compatible(chosen, mutation):
            chosen.append(mutation)
    # What names ranks goes before what moves them about, what renames a deployment comes last.
    for mutation in sorted(chosen, key=lambda one: (one.part == "order", one.code == "DEPLOYMENT_UNKNOWN")):
        mutation.break_it(chance, problem, placement)
    return {one.code for one in chosen}, judged(problem, placement, folder)


@pytest.mark.parametrize("seed", range(40))
def test_several_at_once_are_all_reported(seed, tmp_path):
    """Two to five mutations of different parts: every one is reported, none hides another."""
    expected, judgement = broken(seed, tmp_path)
    assert expected <= judgement.codes, [str(item) for item in judgement.diagnostics]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(1000, 2200))
def test_many_more_at_once(seed, tmp_path):
    """The full count: a hundred draws for each of twelve kinds and more."""
    expected, judgement = broken(seed, tmp_path)
    assert expected <= judgement.codes, [str(item) for item in judgement.diagnostics]

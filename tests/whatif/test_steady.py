"""Plans keep what runs where it runs: the same cost and proof as solved anew, a plan the audit passes, and no more moves."""

from __future__ import annotations

import pytest

from planner.answer.answering import Answer, Options, answer_loaded, answer_menu
from planner.candidates.menu import build_menu
from planner.plan.diff import Snapshot, difference, snapshot
from planner.problem.load import LoadedProblem
from planner.whatif.patching import open_base, patched
from planner.whatif.scenarios import Change, Scenario
from planner.whatif.steady import steady

CHANGES = [
    ("load", "x1.3"),
    ("load", "x0.6"),
    ("load", "x2"),
    ("lose", "h100-02"),
    ("lose", "h100-01:0"),
    ("lose", "a100-01"),
    ("nodes.h100-[01-03].count", "5"),
]


def rearranged(loaded: LoadedProblem, before: Snapshot) -> Answer:
    return answer_menu(loaded, build_menu(loaded), Options(), lambda outcome: steady(outcome, loaded, before))


@pytest.mark.parametrize(("path", "value"), CHANGES)
def test_the_plan_stays_a_plan_and_moves_less(fleet, path, value):
    base = open_base(fleet)
    before = snapshot(answer_loaded(base.loaded).plan)
    loaded = patched(base, Scenario("changed", (Change(path, value),)))
    anew = answer_loaded(loaded)
    kept = rearranged(loaded, before)
    assert kept.audit_errors == ()
    assert kept.plan.status == anew.plan.status
    assert kept.plan.objective == anew.plan.objective
    assert kept.plan.secondary == anew.plan.secondary
    assert difference(before, snapshot(kept.plan)).moves <= difference(before, snapshot(anew.plan)).moves


def test_nothing_moves_when_only_a_price_changes(fleet):
    base = open_base(fleet)
    before = snapshot(answer_loaded(base.loaded).plan)
    loaded = patched(base, Scenario("dearer", (Change("prices", "+20%"),)))
    kept = rearranged(loaded, before)
    assert difference(before, snapshot(kept.plan)).moves == 0


def test_a_plan_on_alike_nodes_goes_back_to_where_it_ran(fleet):
    """Every replica of a plan whose nodes were exchanged comes home."""
    base = open_base(fleet, ["taken=[]", "deployments.chat.workload.concurrency=150"])
    before = snapshot(answer_loaded(base.loaded).plan)
    turn = {"h100-01": "h100-02", "h100-02": "h100-03", "h100-03": "h100-01", "a100-01": "a100-02", "a100-02": "a100-01"}

    def turned(rank: str) -> str:
        node, _, gpu = rank.partition(":")
        return f"{turn[node]}:{gpu}"

    replicas = tuple(item.model_copy(update={"ranks": tuple(map(turned, item.ranks))}) for item in before.replicas)
    exchanged = before.model_copy(update={"replicas": replicas})
    assert difference(exchanged, before).moves > 0
    kept = rearranged(base.loaded, exchanged)
    assert kept.audit_errors == ()
    assert difference(exchanged, snapshot(kept.plan)).moves == 0

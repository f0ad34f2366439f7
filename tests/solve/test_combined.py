"""Random subsets of all rules: CP-SAT, HiGHS and brute force agree, and nothing is called impossible that is not."""

from __future__ import annotations

from collections import Counter

import pytest

from planner.plan.outcome import Status
from planner.solve import confirm, cpsat, highs
from planner.solve.instance import Instance
from planner.solve.model import Model, build
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES
from planner.solve.rules.priority import levels
from planner.solve.search import expression
from tests.solve.combined_fleets import RULES as ASKED
from tests.solve.combined_fleets import combined_instance
from tests.solve.exhaustive_located import best_located, kept, value_of
from tests.solve.fleets import random_instance
from tests.solve.located_fleets import located_instance
from tests.solve.placed import assert_placed
from tests.solve.test_located import touched_domains

EFFORT = cpsat.Limits(4.0)


def by_highs(instance: Instance) -> int | None:
    """Optimal value by HiGHS alone, every level of importance first; None when it says impossible."""
    model = build(instance, RULES)
    for terms in (*levels(model), expression(model, instance.objective)):
        found = highs.minimise(model.program, terms)
        if found.status is Status.INFEASIBLE:
            return None
        assert found.objective is not None
        assert found.bound is not None
        # Weights of unserved loads are larger than a floating-point bound is exact.
        assert found.objective - found.bound <= 1e-8 * abs(found.objective)
        value = found.objective
        model.program.add_row("fixed", terms, upper=value)
    return value


def assert_all_three_agree(seed: int) -> tuple[bool, frozenset[str]]:
    instance, asked = combined_instance(seed)
    expected = best_located(instance)
    decision = decide(instance, SolveOptions(), RULES)
    second = by_highs(instance)
    if expected is None:
        assert decision.status is Status.INFEASIBLE
        assert second is None
        return False, asked
    assert decision.status is Status.OPTIMAL
    assert decision.stages[0].value == second == expected[-1]
    assert decision.model is not None
    chosen = decision.model.instance
    placed = place(decision.model, decision.values)
    assert_placed(chosen, placed, decision.counts)
    unserved = kept(chosen, tuple((replica.shape, touched_domains(chosen, replica)) for replica in placed))
    assert unserved is not None
    assert value_of(chosen, unserved, expected[-1]) == expected
    return True, asked


def assert_covered(found: list[tuple[bool, frozenset[str]]], least: int) -> None:
    """Every rule was asked in fleets with a plan and in fleets without one."""
    for possible in (True, False):
        seen = Counter(rule for answer, asked in found if answer is possible for rule in asked)
        assert all(seen[rule] >= least for rule in ASKED), (possible, seen)


def assert_together(found: list[tuple[bool, frozenset[str]]], least: int) -> None:
    """Spares and buckets met every other rule in fleets with a plan; after a loss nothing is promised of a load in buckets."""
    pairs = Counter((new, rule) for possible, asked in found if possible for new in asked & {"spares", "buckets"} for rule in asked - {new})
    assert all(pairs[new, rule] >= least for new in ("spares", "buckets") for rule in ASKED if rule != new), pairs


def test_a_plan_that_serves_nothing():
    """Where the best plan leaves every load unserved no shape may have a replica, and the stages that follow have nothing to choose from."""
    assert assert_all_three_agree(243)[0]
    assert not any(decide(combined_instance(243)[0], SolveOptions(), RULES).counts)


def test_a_sample_of_subsets():
    assert_covered([assert_all_three_agree(seed) for seed in range(100)], 4)


@pytest.mark.thorough
def test_many_subsets():
    found = [assert_all_three_agree(seed) for seed in range(2_000)]
    assert_covered(found, 100)
    assert_together(found, 20)


def instance_of_seed(seed: int) -> Instance:
    """Instances of every generator in turn, for all objectives."""
    if seed % 3 == 0:
        return combined_instance(seed)[0]
    return located_instance(seed) if seed % 3 == 1 else random_instance(seed)


def has_plan(model: Model) -> bool:
    """Whether a program has a solution: CP-SAT and HiGHS say the same, and what both call impossible the elastic program does too."""
    first, second = cpsat.minimise(model.program, {}, EFFORT), highs.minimise(model.program, {})
    assert (first.status is Status.INFEASIBLE) == (second.status is Status.INFEASIBLE)
    if first.status is Status.INFEASIBLE:
        assert (confirm.elastic(model.program, EFFORT).bound or 0) > 0
        return False
    assert first.values is not None
    assert second.values is not None
    return True


def assert_not_falsely_impossible(seed: int) -> bool:
    instance = instance_of_seed(seed)
    possible = has_plan(build(instance, RULES))
    # What is pruned before the solvers see it must not make the difference.
    assert (decide(instance, SolveOptions(), RULES).status is not Status.INFEASIBLE) == possible
    return possible


def test_a_sample_is_not_falsely_impossible():
    found = [assert_not_falsely_impossible(seed) for seed in range(10_000, 10_040)]
    assert 8 <= sum(found) <= 32


@pytest.mark.thorough
def test_nothing_is_falsely_impossible():
    """Two thousand instances, about half of them without a plan."""
    found = [assert_not_falsely_impossible(seed) for seed in range(20_000, 22_000)]
    assert 500 <= sum(found) <= 1500

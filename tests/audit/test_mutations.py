"""Every lie is caught: mutated plans always bring errors, right plans never."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from planner.audit.audit import audit
from tests.audit.mutations import MUTATIONS, mutate
from tests.audit.scenarios import SCENARIOS, cases

NAMES = [scenario.name for scenario in SCENARIOS]


def found(case, plan):
    """What the auditor says of a plan for this case's question."""
    return audit(case.problem, case.fabric, case.architectures, plan)


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_right_plan_passes(index):
    case = cases()[index]
    assert found(case, case.plan) == ()


def assert_caught(name, most):
    """Mutate plans of the scenarios in random order, as many as asked for; each must be noticed."""
    rng = random.Random(name)
    order = rng.sample(cases(), len(cases()))
    mutated = islice(((case, plan) for case in order if (plan := mutate(case, name, rng)) is not None), most)
    noticed = {case.name: bool(found(case, plan)) for case, plan in mutated}
    assert noticed
    assert all(noticed.values()), noticed


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_each_mutation_is_caught(name):
    assert_caught(name, 2)


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_each_mutation_is_caught_wherever_it_applies(name):
    assert_caught(name, len(cases()))


def sweep(count, seed):
    """Random mutations of random plans; the names of those that went unnoticed."""
    rng = random.Random(seed)
    missed, tried = [], 0
    while tried < count:
        case, name = rng.choice(cases()), rng.choice(sorted(MUTATIONS))
        plan = mutate(case, name, rng)
        if plan is not None:
            tried += 1
            if not found(case, plan):
                missed.append((case.name, name))
    return missed


def test_random_mutations_are_caught():
    assert sweep(40, seed=1) == []


@pytest.mark.thorough
def test_many_random_mutations_are_caught():
    assert sweep(500, seed=2) == []


def test_errors_say_what_where_and_what_to_do():
    rng = random.Random(3)
    for case in cases()[::2]:
        for name in ("gpu_used_twice", "weights_lowered", "price_of_replica_lowered", "rank_numbers_changed", "time_lowered"):
            plan = mutate(case, name, rng)
            for diagnostic in found(case, plan) if plan is not None else ():
                assert diagnostic.code.isupper()
                assert diagnostic.message
                assert diagnostic.hint
                assert diagnostic.place is not None
                assert diagnostic.place.path

"""Rules about places against brute force on tiny fleets, and every plan placed as it was counted."""

from __future__ import annotations

import pytest

from planner.plan.outcome import Status
from planner.solve.instance import Instance
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import Placed, place
from planner.solve.rules import RULES
from tests.solve.exhaustive_located import Touch, best_located, kept, labels_of, value_of
from tests.solve.located_fleets import located_instance
from tests.solve.placed import assert_placed


def touched_domains(instance: Instance, replica: Placed) -> Touch:
    """Failure domains of the positions that a placed replica got."""
    pool = int(instance.shapes.pool[replica.shape])
    scopes = instance.pools[pool]
    found: set[tuple[str, int]] = set()
    for group in replica.groups:
        nodes = scopes.nodes[group.scope] if scopes.nodes and scopes.nodes[group.scope] else (int(scopes.free[group.scope]),)
        owners = [node for node, free in enumerate(nodes) for _ in range(free)]
        for position in group.positions:
            found |= labels_of(instance, pool, group.scope, owners[position])
    return frozenset(found)


def assert_equals_brute_force(seed: int) -> bool:
    instance = located_instance(seed)
    expected = best_located(instance)
    decision = decide(instance, SolveOptions(), RULES)
    if expected is None:
        assert decision.status is Status.INFEASIBLE
        return False
    assert decision.status is Status.OPTIMAL
    assert decision.stages[0].value == expected[-1]
    assert decision.model is not None
    chosen = decision.model.instance
    placed = place(decision.model, decision.values)
    assert_placed(chosen, placed, decision.counts)
    unserved = kept(chosen, tuple((replica.shape, touched_domains(chosen, replica)) for replica in placed))
    assert unserved is not None
    assert value_of(chosen, unserved, expected[-1]) == expected
    return True


def test_a_sample_of_tiny_fleets():
    assert sum(assert_equals_brute_force(seed) for seed in range(6, 33)) >= 8


@pytest.mark.thorough
def test_many_tiny_fleets():
    assert sum(assert_equals_brute_force(seed) for seed in range(500)) >= 150

"""CP-SAT against brute force on tiny fleets with every rule in them, and every plan placed."""

from __future__ import annotations

import pytest

from planner.plan.outcome import Status
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES
from tests.solve.exhaustive import best
from tests.solve.fleets import random_instance
from tests.solve.placed import assert_placed, nodes_opened


def assert_equals_brute_force(seed: int) -> bool:
    instance = random_instance(seed)
    expected = best(instance)
    decision = decide(instance, SolveOptions(), RULES)
    if expected is None:
        assert decision.status is Status.INFEASIBLE
        return False
    assert decision.status is Status.OPTIMAL
    assert tuple(stage.value for stage in decision.stages if stage.name in {instance.objective, "first_token"}) == expected
    assert decision.model is not None
    chosen = decision.model.instance
    placed = place(decision.model, decision.values)
    assert_placed(chosen, placed, decision.counts)
    for pool, scopes in enumerate(chosen.pools):
        if scopes.node_price is not None and instance.objective == "cost":
            by_gpu = sum(
                int(chosen.shapes.price[replica.shape])
                for replica in placed
                if chosen.pools[int(chosen.shapes.pool[replica.shape])].node_price is None
            )
            by_node = sum(nodes_opened(chosen, placed, other) * (chosen.pools[other].node_price or 0) for other in range(len(chosen.pools)))
            assert (by_gpu + by_node,) == expected
            assert pool < len(chosen.pools)
    return True


def test_a_sample_of_tiny_fleets():
    assert sum(assert_equals_brute_force(seed) for seed in range(60)) >= 20


@pytest.mark.thorough
def test_many_tiny_fleets():
    assert sum(assert_equals_brute_force(seed) for seed in range(500)) >= 200

"""Laws that hold whatever the fleet: more room never costs more, names and order change nothing, prices scale, runs repeat."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.solve.instance import Instance, PoolScopes
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES
from tests.solve.fleets import random_instance

SEEDS = list(range(40))


def value(instance: Instance) -> int | None:
    stages = decide(instance, SolveOptions(), RULES).stages
    return stages[0].value if stages else None


def plain(seed: int, objective: str = "cost") -> Instance:
    """A random instance without parts or nodes, so that a GPU can be added to any scope."""
    instance = random_instance(seed, objective)
    return replace(instance, pools=tuple(replace(pool, nodes=(), _slots={}) for pool in instance.pools))


def with_one_more(pool: PoolScopes, scope: int) -> PoolScopes:
    free = pool.free.copy()
    free[scope] += 1
    parts = tuple((*part, 1) if index == scope else part for index, part in enumerate(pool.parts))
    return replace(pool, free=free, parts=parts, _slots={})


@pytest.mark.parametrize("objective", ["cost", "gpus", "latency", "throughput"])
def test_one_more_free_gpu_never_makes_it_worse(objective):
    compared = 0
    for seed in SEEDS:
        instance = plain(seed, objective)
        before = value(instance)
        pools = (with_one_more(instance.pools[0], 0), *instance.pools[1:])
        after = value(replace(instance, pools=pools))
        if before is not None:
            compared += 1
            assert after is not None
            assert after <= before
    assert compared >= 8


def test_order_of_scopes_changes_nothing():
    for seed in SEEDS:
        instance = random_instance(seed, "cost")
        pools = []
        for pool in instance.pools:
            turned = np.arange(len(pool))[::-1]
            pools.append(
                replace(
                    pool,
                    **{name: getattr(pool, name)[turned] for name in ("free", "capacity", "leaf", "spine", "fabric")},
                    parts=pool.parts[::-1],
                    nodes=pool.nodes[::-1],
                    _slots={},
                )
            )
        assert value(replace(instance, pools=tuple(pools))) == value(instance)


def test_order_of_deployments_and_shapes_changes_nothing():
    for seed in SEEDS:
        instance = random_instance(seed, "cost")
        shapes = instance.shapes.take(np.arange(len(instance.shapes))[::-1].copy())
        shapes = replace(shapes, deployment=instance.deployments - 1 - shapes.deployment)
        turned = replace(instance, shapes=shapes, loads=instance.loads[::-1].copy(), limits=instance.limits[::-1])
        assert value(turned) == value(instance)


def test_doubled_prices_double_the_cost():
    compared = 0
    for seed in SEEDS:
        instance = replace(random_instance(seed, "cost"), budget=replace(random_instance(seed).budget, per_hour=None))
        doubled = replace(
            instance,
            shapes=replace(instance.shapes, price=2 * instance.shapes.price),
            pools=tuple(replace(pool, node_price=None if pool.node_price is None else 2 * pool.node_price) for pool in instance.pools),
        )
        before, after = value(instance), value(doubled)
        compared += before is not None
        assert after == (None if before is None else 2 * before)
    assert compared >= 8


def test_a_rule_of_more_replicas_never_costs_less():
    for seed in SEEDS:
        instance = random_instance(seed, "cost")
        before = value(replace(instance, limits=tuple(replace(limits, minimum=0) for limits in instance.limits)))
        after = value(replace(instance, limits=tuple(replace(limits, minimum=2) for limits in instance.limits)))
        if after is not None:
            assert before is not None
            assert before <= after


def test_runs_repeat():
    for seed in SEEDS[:20]:
        first, second = (decide(random_instance(seed), SolveOptions(), RULES) for _ in range(2))
        assert first.values == second.values
        assert first.stages == second.stages
        if first.model is not None and second.model is not None:
            assert place(first.model, first.values) == place(second.model, second.values)


PROGRAM = """
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES
from tests.solve.fleets import random_instance
for seed in range(30):
    decision = decide(random_instance(seed), SolveOptions(), RULES)
    print(decision.status, decision.stages, decision.values, place(decision.model, decision.values) if decision.model else "")
"""


def test_runs_repeat_in_other_processes():
    """The order of sets and hashes differs from process to process; the plan does not."""
    root = Path(__file__).parents[2]
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1

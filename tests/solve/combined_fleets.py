"""Random tiny fleets under a random subset of all rules."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

from planner.solve.buckets import NOT_SERVED, Slicing
from planner.solve.instance import Budget, Container, DeploymentRules, GpuBudget, Instance, ReplicaLimits, Resilience, Spread
from planner.solve.spare_shapes import with_spares
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of

RULES = (
    "billing",
    "budget",
    "types",
    "replicas",
    "one_shape",
    "priority",
    "pin",
    "spread",
    "resilience",
    "locality",
    "odd_sizes",
    "spares",
    "buckets",
)
"""What may be asked besides loads and room: each is, or is not, at odds of 3 to 7."""


def combined_instance(seed: int) -> tuple[Instance, frozenset[str]]:
    """A fleet of at most nine free GPUs, small enough for brute force over all places; and which rules it has."""
    draw = random.Random(seed)
    asked = frozenset(rule for rule in RULES if draw.random() < 0.3)
    pools = []
    room = draw.randint(5, 9)
    for first_node in (0, 100)[: draw.choice([1, 1, 2])]:
        rows: list[ScopeRow] = []
        for _ in range(draw.randint(2, 3)):
            leaf = draw.randint(0, 1)
            free = min(room, draw.randint(1, 4))
            room -= free
            place = {"racks": (draw.randint(0, 1),), "allowed": (draw.choice([0, 1, 1, 1]),)}
            rows.append(ScopeRow(free, 4, leaf, leaf, 0, nodes=(free,) if free else (), **place))
        pools.append(pool_of(rows, draw.randint(3, 12) if "billing" in asked and draw.random() < 0.7 else None, first_node))
    deployments = draw.choice([1, 2, 2])
    rules = [_rules(draw, asked) for _ in range(deployments)]
    if "buckets" in asked:
        # Of a load in buckets nobody promises what is left after a loss.
        rules[0] = replace(rules[0], resilience=None)
    rows_of_shapes = []
    for deployment in range(deployments):
        for _ in range(draw.randint(1, 2)):
            size = draw.choice([1, 2, 3, 4] if "odd_sizes" in asked else [1, 2, 2, 4])
            groups, container = 1, Container.ANYWHERE
            if "locality" in asked and size <= 2 and draw.random() < 0.5:
                groups, container = 2, draw.choice(list(Container))
            size = max(size, 2) if any(rule.may_go_unserved for rule in rules) and groups == 1 else size
            gpus = size * groups
            capacity, price = draw.randint(1, 3) * gpus, draw.randint(1, 4) * gpus
            rows_of_shapes.append(ShapeRow(size, capacity, price, deployment, draw.randrange(len(pools)), groups, container))
    limits = [
        ReplicaLimits(
            draw.choice([0, 1, 2]) if "replicas" in asked else 0,
            draw.choice([None, 2, 3]) if "replicas" in asked else None,
            "one_shape" in asked,
        )
        for _ in range(deployments)
    ]
    loads = [draw.randint(1, 5) for _ in range(deployments)]
    budget = Budget(
        draw.randint(8, 50) if "budget" in asked else None,
        (GpuBudget("first", (0,), draw.randint(2, 6)), GpuBudget("all", tuple(range(len(pools))), draw.randint(3, 7)))
        if "types" in asked
        else (),
    )
    slicing: tuple[Slicing | None, ...] = ()
    if "buckets" in asked:
        rows_of_shapes, slicing = _buckets(draw, rows_of_shapes, loads)
    instance = instance_of(rows_of_shapes, loads, pools, limits, budget, draw.choice(["cost", "cost", "gpus"]), rules, slicing)
    if all(rule == DeploymentRules() for rule in rules):
        instance = replace(instance, rules=())
    return with_spares(instance), asked


def _buckets(draw: random.Random, rows: list[ShapeRow], loads: list[int]) -> tuple[list[ShapeRow], tuple[Slicing | None, ...]]:
    """The load of the first deployment in buckets, of which a replica of each shape serves some."""
    buckets = draw.randint(1, 2)
    cut = [
        replace(row, use=tuple(draw.choice([NOT_SERVED, *[draw.randint(2, 12)] * 5]) for _ in range(buckets)))
        if not row.deployment
        else row
        for row in rows
    ]
    parts = tuple(loads[0] // buckets + 1 for _ in range(buckets))
    return cut, (Slicing(draw.randint(1, 2), 10, (10**6 // buckets,) * buckets, parts), *(None for _ in loads[1:]))


def _rules(draw: random.Random, asked: frozenset[str]) -> DeploymentRules:
    kinds = ["node", "leaf", "rack"]
    return DeploymentRules(
        Spread(draw.choice(kinds), draw.choice([1, 1, 2])) if "spread" in asked and draw.random() < 0.7 else None,
        Resilience(draw.choice(["gpu", *kinds]), draw.choice([Fraction(1), Fraction(1, 2), Fraction(4, 5)]))
        if "resilience" in asked and draw.random() < 0.8
        else None,
        draw.choice([0, 1, 2]) if "priority" in asked else 0,
        draw.choice([Fraction(0), Fraction(1, 2), Fraction(1)]) if "priority" in asked else Fraction(0),
        draw.choice(["", "allowed"]) if "pin" in asked else "",
        draw.choice([0, 1, 1, 2]) if "spares" in asked else 0,
    )

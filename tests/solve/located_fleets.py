"""Random tiny fleets whose deployments have rules about places."""

from __future__ import annotations

import random
from fractions import Fraction

from planner.solve.instance import Container, DeploymentRules, Instance, PoolScopes, ReplicaLimits, Resilience, Spread
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of


def located_pool(draw: random.Random, first_node: int) -> PoolScopes:
    """Two to four small scopes under leaves and racks, which cross; now and then a domain of several nodes."""
    rows = []
    for _ in range(draw.randint(2, 4)):
        leaf = draw.randint(0, 2)
        if draw.random() < 0.2:
            nodes = tuple(draw.randint(1, 2) for _ in range(2))
            racks, allowed = (tuple(draw.randint(0, 1) for _ in nodes) for _ in range(2))
            rows.append(ScopeRow(sum(nodes), 4, leaf, leaf // 2, 0, nodes=nodes, racks=racks, allowed=allowed))
        else:
            free = draw.randint(0, 4)
            rows.append(
                ScopeRow(
                    free,
                    4,
                    leaf,
                    leaf // 2,
                    0,
                    nodes=(free,) if free else (),
                    racks=(draw.randint(0, 1),),
                    allowed=(draw.choice([0, 1, 1]),),
                )
            )
    price = draw.choice([None, None, None, draw.randint(3, 9)]) if all(len(row.nodes) < 2 for row in rows) else None
    return pool_of(rows, price, first_node)


def random_rules(draw: random.Random) -> DeploymentRules:
    spread = Spread(draw.choice(["node", "leaf", "rack"]), draw.choice([1, 1, 2])) if draw.random() < 0.4 else None
    resilience = None
    if draw.random() < 0.6:
        resilience = Resilience(
            draw.choice(["gpu", "node", "leaf", "rack"]), draw.choice([Fraction(1), Fraction(1), Fraction(1, 2), Fraction(4, 5)])
        )
    part = draw.choice([Fraction(0), Fraction(0), Fraction(1, 2), Fraction(1)])
    return DeploymentRules(spread, resilience, draw.choice([0, 0, 1, 2]), part, draw.choice(["", "", "allowed"]))


def located_instance(seed: int) -> Instance:
    draw = random.Random(seed)
    pools = [located_pool(draw, 0)]
    if draw.random() < 0.3:
        pools.append(located_pool(draw, 100))
    deployments = draw.choice([1, 1, 2])
    rules = [random_rules(draw) for _ in range(deployments)]
    # Where any part may go unserved brute force tries every number of replicas: larger ones are fewer.
    smallest = 2 if any(rule.may_go_unserved for rule in rules) else 1
    rows = []
    for deployment in range(deployments):
        for _ in range(draw.randint(1, 2)):
            size = max(smallest, draw.choice([1, 2, 2, 3, 4]))
            groups, container = 1, Container.ANYWHERE
            if draw.random() < 0.4:
                groups, size, container = draw.choice([2, 2, 3]), max(smallest, draw.choice([1, 2])), draw.choice(list(Container))
            capacity = draw.randint(1, 3) * size * groups
            price = draw.randint(1, 4) * size * groups
            rows.append(ShapeRow(size, capacity, price, deployment, draw.randrange(len(pools)), groups, container))
    limits = [ReplicaLimits(draw.choice([0, 0, 0, 2]), draw.choice([None, None, 3]), draw.random() < 0.1) for _ in range(deployments)]
    loads = [draw.randint(1, 7) for _ in range(deployments)]
    return instance_of(rows, loads, pools, limits, rules=rules)

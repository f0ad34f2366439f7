"""Hand-made instances and random tiny fleets for the solver's tests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.solve.buckets import NOT_SERVED, Slicing
from planner.solve.instance import Budget, Container, DeploymentRules, Instance, PoolScopes, ReplicaLimits, ShapeColumns
from planner.solve.token_time import TimedShapes, token_times


@dataclass(frozen=True)
class ShapeRow:
    """One shape of a hand-made instance."""

    size: int
    capacity: int = 1
    price: int = 1
    deployment: int = 0
    pool: int = 0
    groups: int = 1
    container: Container = Container.ANYWHERE
    within_part: bool = False
    comm: int = 0
    tpot: int = 10
    ttft: int = 100
    use: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScopeRow:
    """One scale-up scope of a hand-made pool."""

    free: int
    capacity: int = 8
    leaf: int = 0
    spine: int = 0
    fabric: int = 0
    parts: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    racks: tuple[int, ...] = ()
    allowed: tuple[int, ...] = ()


def domains_of(rows: Sequence[ScopeRow], first_node: int = 0) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Failure domains of the scopes: a number for every node, their leaves, and the racks of their nodes."""
    node, nodes = first_node, []
    for row in rows:
        count = max(1, len(row.nodes))
        nodes.append(tuple(range(node, node + count)))
        node += count
    return {
        "node": tuple(nodes),
        "leaf": tuple((row.leaf,) * max(1, len(row.nodes)) for row in rows),
        "allowed": tuple(row.allowed or (1,) * max(1, len(row.nodes)) for row in rows),
        "rack": tuple(row.racks or (0,) * max(1, len(row.nodes)) for row in rows),
    }


def pool_of(rows: Sequence[ScopeRow], node_price: int | None = None, first_node: int = 0) -> PoolScopes:
    def column(name: str) -> np.ndarray:
        return np.array([getattr(row, name) for row in rows], dtype=np.int64)

    return PoolScopes(
        free=column("free"),
        capacity=column("capacity"),
        leaf=column("leaf"),
        spine=column("spine"),
        fabric=column("fabric"),
        order=np.arange(len(rows), dtype=np.int64),
        parts=tuple(row.parts for row in rows) if any(row.parts for row in rows) else (),
        nodes=tuple(row.nodes for row in rows) if any(row.nodes for row in rows) else (),
        node_price=node_price,
        domains=domains_of(rows, first_node),
    )


def free_pool(*free: int, capacity: int = 8) -> PoolScopes:
    return pool_of([ScopeRow(count, capacity) for count in free])


def columns_of(rows: Sequence[ShapeRow], loads: Sequence[int]) -> ShapeColumns:
    def column(name: str) -> np.ndarray:
        return np.array([getattr(row, name) for row in rows], dtype=np.int64)

    return ShapeColumns(
        deployment=column("deployment"),
        pool=column("pool"),
        size=column("size"),
        groups=column("groups"),
        container=column("container"),
        within_part=np.array([row.within_part for row in rows], dtype=bool),
        capacity=column("capacity"),
        share=np.array([row.capacity * 10**6 // loads[row.deployment] for row in rows], dtype=np.int64),
        price=column("price"),
        comm=column("comm"),
        tpot=column("tpot"),
        ttft=column("ttft"),
        form=np.arange(len(rows), dtype=np.int64),
        token_time=token_times(
            TimedShapes(
                deployment=column("deployment"),
                pool=column("pool"),
                gpus=column("size") * column("groups"),
                price=column("price"),
                capacity=column("capacity"),
                tpot=column("tpot"),
                relief=column("tpot") // 3,
            ),
            np.array(loads, dtype=np.int64),
            {},
        ),
        **bucket_columns(rows),
    )


def bucket_columns(rows: Sequence[ShapeRow]) -> dict[str, np.ndarray]:
    most = max(len(row.use) for row in rows)
    if not most:
        return {}
    use = np.array([(*row.use, *(NOT_SERVED,) * (most - len(row.use))) for row in rows], dtype=np.int64)
    return {"use": use, "bucket_tpot": np.array([[row.tpot] * most for row in rows], dtype=np.int64)}


def instance_of(
    rows: Sequence[ShapeRow],
    loads: Sequence[int],
    pools: Sequence[PoolScopes],
    limits: Sequence[ReplicaLimits] | None = None,
    budget: Budget | None = None,
    objective: str = "cost",
    rules: Sequence[DeploymentRules] = (),
    slicing: Sequence[Slicing | None] = (),
) -> Instance:
    return Instance(
        shapes=columns_of(rows, loads),
        loads=np.array(loads, dtype=np.int64),
        pools=tuple(pools),
        limits=tuple(limits) if limits is not None else tuple(ReplicaLimits() for _ in loads),
        budget=budget if budget is not None else Budget(),
        objective=objective,
        source=np.arange(len(rows), dtype=np.int64),
        rules=tuple(rules),
        slicing=tuple(slicing),
    )


def random_pool(draw: random.Random, flavour: str) -> PoolScopes:
    """A few scopes with holes: plain ones of up to 8 GPUs, boxes of pairs, or scopes under several leaves and spines."""
    node_price = draw.choice([None, None, draw.randint(5, 20)])
    if flavour == "pairs":
        rows = []
        for _ in range(draw.randint(1, 2)):
            parts = tuple(sorted((draw.randint(0, 2) for _ in range(draw.choice([2, 4]))), reverse=True))
            parts = tuple(part for part in parts if part)
            rows.append(ScopeRow(sum(parts), 8, parts=parts))
        return pool_of(rows, node_price)
    if flavour == "nodes":
        rows = []
        for _ in range(draw.randint(1, 2)):
            nodes = tuple(draw.randint(0, 4) for _ in range(draw.randint(2, 3)))
            nodes = tuple(node for node in nodes if node)
            rows.append(ScopeRow(sum(nodes), 12, nodes=nodes))
        return pool_of(rows, node_price)
    if flavour == "leaves":
        count = draw.randint(2, 4)
        leaves = sorted(draw.randint(0, 2) for _ in range(count))
        return pool_of([ScopeRow(draw.randint(0, 8), 8, leaf, leaf // 2, 0) for leaf in leaves], node_price)
    return pool_of([ScopeRow(draw.randint(0, 8)) for _ in range(draw.randint(1, 3))], node_price)


def random_instance(seed: int, objective: str | None = None) -> Instance:
    """A tiny question with every kind of rule in it now and then."""
    draw = random.Random(seed)
    flavours = [draw.choice(["plain", "plain", "pairs", "nodes", "leaves"]) for _ in range(draw.choice([1, 1, 2]))]
    pools = [random_pool(draw, flavour) for flavour in flavours]
    deployments = draw.choice([1, 2, 2])
    loads = [draw.randint(1, 9) for _ in range(deployments)]
    rows = []
    for deployment in range(deployments):
        for _ in range(draw.randint(1, 3)):
            pool = draw.randrange(len(pools))
            sizes = draw.choice([(1, 2, 4, 8), (1, 2, 3, 4), (2, 3, 6)])
            size = draw.choice(sizes)
            groups, container, within_part = 1, Container.ANYWHERE, False
            if flavours[pool] == "pairs" and size <= 2 and draw.random() < 0.6:
                within_part = size > 1
            elif draw.random() < 0.4:
                groups = draw.choice([2, 2, 3])
                container = draw.choice(list(Container))
            rows.append(
                ShapeRow(
                    size,
                    draw.randint(1, 3) * size * groups // draw.choice([1, 2]) or 1,
                    draw.randint(1, 4) * size * groups,
                    deployment,
                    pool,
                    groups,
                    container,
                    within_part,
                    draw.randint(0, 5),
                    draw.randint(5, 12),
                    draw.randint(50, 60),
                )
            )
    limits = [ReplicaLimits(draw.choice([0, 0, 0, 2]), draw.choice([None, None, None, 3]), draw.random() < 0.2) for _ in range(deployments)]
    budget = Budget(draw.choice([None, None, draw.randint(15, 70)]))
    return instance_of(rows, loads, pools, limits, budget, objective or draw.choice(["cost", "cost", "gpus", "latency", "throughput"]))


def random_bucket_instance(seed: int, objective: str | None = None) -> Instance:
    """A tiny question whose first load is in buckets, and now and then a second one that is not."""
    draw = random.Random(seed)
    pools = [pool_of([ScopeRow(draw.randint(1, 4), 4) for _ in range(draw.randint(1, 2))]) for _ in range(draw.choice([1, 2]))]
    slices, buckets = draw.randint(1, 3), draw.randint(1, 3)
    loads = [draw.randint(buckets, 9)]
    rows = []
    for _ in range(draw.randint(1, 3)):
        size = draw.choice([1, 1, 2, 4])
        use = tuple(draw.choice([NOT_SERVED, *[draw.randint(1, 12)] * 5]) for _ in range(buckets))
        rows.append(
            ShapeRow(size, draw.randint(1, 5), draw.randint(1, 4) * size, 0, draw.randrange(len(pools)), tpot=draw.randint(5, 9), use=use)
        )
    if draw.random() < 0.4:
        loads.append(draw.randint(1, 4))
        rows.append(ShapeRow(1, draw.randint(1, 2), draw.randint(1, 3), 1, draw.randrange(len(pools))))
    whole = Slicing(slices, 10, (10**6 // buckets,) * buckets, tuple(loads[0] // buckets + 1 for _ in range(buckets)))
    limits = [ReplicaLimits(draw.choice([0, 0, 2]), draw.choice([None, None, 3]), draw.random() < 0.2) for _ in loads]
    budget = Budget(draw.choice([None, None, draw.randint(4, 20)]))
    asked = objective or draw.choice(["cost", "cost", "gpus", "throughput"])
    return instance_of(rows, loads, pools, limits, budget, asked, slicing=[whole, *(None for _ in loads[1:])])

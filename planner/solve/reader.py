"""From the problem, the fabric and the menu to the solver's integers, and from positions back to GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from planner.plan.shape import Shape
from planner.solve.domains import FORBIDDEN, PINNED, DomainNumbers, allowed_gpus
from planner.solve.instance import (
    NO_RULES,
    Budget,
    Container,
    DeploymentRules,
    GpuBudget,
    Instance,
    IntArray,
    PoolScopes,
    ReplicaLimits,
    Resilience,
    ShapeColumns,
    Spread,
)
from planner.solve.running import all_shapes, scopes_of, seats_of
from planner.solve.scaling import SHARE_UNITS, TIME_UNITS, ceil_money, ceil_units, floor_column, floor_money, load_scale
from planner.solve.slicing import read_slicing
from planner.solve.spare_shapes import with_spares
from planner.solve.token_time import TimedShapes, token_times

if TYPE_CHECKING:
    from planner.plan.outcome import PlacedReplica
    from planner.problem.documents import Deployment, Problem
    from planner.topology.fabric import Fabric
    from planner.topology.pools import Pool

CONTAINERS = {"leaf": Container.LEAF, "spine": Container.SPINE, "fabric": Container.FABRIC}


def read(
    problem: Problem, fabric: Fabric, shapes: Sequence[Shape], loads: Sequence[float], running: Sequence[PlacedReplica] = ()
) -> Instance:
    """Write the question in integers: capacities and shares rounded down, loads and prices up, times to whole nanoseconds.

    `running` are replicas of the current plan that may stay; their shapes follow the others, as `all_shapes` lists them.
    """
    pools = fabric.pools
    fresh, shapes = len(shapes), all_shapes(shapes, running)
    scales = [load_scale(load, [shape.capacity for shape in shapes if shape.deployment == number]) for number, load in enumerate(loads)]
    sliced = read_slicing(problem, shapes, loads, scales)
    demand = _column(ceil_units(load, scale) for load, scale in zip(loads, scales, strict=True))
    whole = {pool.index: pool.gpus_per_node for pool in pools if billed_by_node(pool)}
    timed = _timed(shapes, scales, full=problem.objective == "throughput")
    shares = np.array([shape.capacity for shape in shapes], dtype=np.float64) / np.array(loads, dtype=np.float64)[timed.deployment]
    columns = ShapeColumns(
        deployment=timed.deployment,
        pool=timed.pool,
        # A replica that stays has its place: its groups are asked of nobody.
        size=_column(shape.group_size if number < fresh else shape.degrees.gpus for number, shape in enumerate(shapes)),
        groups=_column(shape.groups if number < fresh else 1 for number, shape in enumerate(shapes)),
        container=_column(int(_container(shape)) if number < fresh else 0 for number, shape in enumerate(shapes)),
        within_part=np.array(
            [number < fresh and _within_part(shape, pools[shape.pool]) for number, shape in enumerate(shapes)], dtype=bool
        ),
        capacity=timed.capacity,
        share=floor_column(shares, np.full(len(shapes), SHARE_UNITS)),
        price=timed.price,
        comm=_nanoseconds(shape.comm_seconds for shape in shapes),
        tpot=_nanoseconds(shape.times.tpot for shape in shapes),
        ttft=_nanoseconds(shape.times.ttft for shape in shapes),
        form=_forms(shapes, pools),
        token_time=token_times(timed, demand, whole, by_gpus=problem.objective == "gpus"),
        use=sliced.use,
        bucket_tpot=sliced.tpot,
    )
    budget = problem.budget
    limited = {} if budget is None or budget.gpus is None else budget.gpus
    masks = allowed_gpus(problem, fabric)
    rules = tuple(_rules(deployment, masks) for deployment in problem.deployments)
    domains = DomainNumbers(fabric, sorted({kind for rule in rules for kind in rule.kinds}), masks)
    scopes = tuple(read_pool(fabric, pool, domains) for pool in pools)
    return with_spares(
        Instance(
            shapes=columns,
            loads=demand,
            pools=scopes,
            limits=tuple(
                ReplicaLimits()
                if deployment.replicas is None
                else ReplicaLimits(deployment.replicas.min or 0, deployment.replicas.max, deployment.replicas.one_shape)
                for deployment in problem.deployments
            ),
            budget=Budget(
                None if budget is None or budget.per_hour is None else floor_money(budget.per_hour),
                tuple(
                    GpuBudget(name, tuple(pool.index for pool in pools if pool.gpu.name == name), limit)
                    for name, limit in sorted(limited.items())
                ),
            ),
            objective=problem.objective,
            priced=all(pools[pool].price_per_gpu is not None for pool in {shape.pool for shape in shapes}),
            source=np.arange(len(shapes), dtype=np.int64),
            rules=rules if any(rule != NO_RULES for rule in rules) else (),
            seats=seats_of(fabric, scopes, running, {shape: fresh + number for number, shape in enumerate(shapes[fresh:])}),
            move_price=None if problem.current is None else ceil_money(problem.current.price_per_hour),
            slicing=sliced.slicing,
        )
    )


def _rules(deployment: Deployment, masks: Iterable[str]) -> DeploymentRules:
    spread, resilience = deployment.spread, deployment.resilience
    return DeploymentRules(
        spread=None if spread is None else Spread(spread.over, spread.most),
        # A share is read as it is written: 0.8 is 4/5.
        resilience=None if resilience is None else Resilience(resilience.lose, Fraction(repr(float(resilience.keep)))),
        priority=deployment.priority,
        spares=deployment.spares,
        may_go_unserved=Fraction(repr(float(deployment.may_go_unserved))),
        only=next((kind for kind in masks if kind in {PINNED + deployment.name, FORBIDDEN + deployment.name}), ""),
    )


def _column(values: Iterable[int]) -> IntArray:
    return np.array(list(values), dtype=np.int64)


def _timed(shapes: Sequence[Shape], scales: Sequence[int], *, full: bool) -> TimedShapes:
    """Columns that tell plans of equal cost apart; room is worth nothing where replicas are `full`."""
    deployment = _column(shape.deployment for shape in shapes)
    capacity = np.array([shape.capacity for shape in shapes], dtype=np.float64)
    return TimedShapes(
        deployment=deployment,
        pool=_column(shape.pool for shape in shapes),
        gpus=_column(shape.degrees.gpus for shape in shapes),
        price=_column(map(cache(ceil_money), (shape.price for shape in shapes))),
        capacity=floor_column(capacity, np.array(scales, dtype=np.int64)[deployment]),
        tpot=_nanoseconds(shape.times.tpot if shape.load_tpot is None else shape.load_tpot for shape in shapes),
        relief=_nanoseconds(0.0 if full else (shape.relief or 0.0) for shape in shapes),
    )


def billed_by_node(pool: Pool) -> bool:
    """Whether the nodes of a pool are paid for whole."""
    return pool.billing == "node" and pool.price_per_node is not None


def _nanoseconds(seconds: Iterable[float]) -> IntArray:
    return np.rint(np.array(list(seconds), dtype=np.float64) * TIME_UNITS).astype(np.int64)


def _forms(shapes: Sequence[Shape], pools: Sequence[Pool]) -> IntArray:
    """Number the shapes by what their user sees of them: GPU type, degrees, operating point, formats."""
    numbers: dict[tuple[object, ...], int] = {}
    found = []
    for shape in shapes:
        seen = (
            pools[shape.pool].gpu.name,
            shape.degrees,
            shape.batch,
            shape.locality,
            shape.partition,
            shape.weights_dtype,
            shape.kv_dtype,
        )
        found.append(numbers.setdefault(seen, len(numbers)))
    return _column(found)


def _container(shape: Shape) -> Container:
    return Container.ANYWHERE if shape.groups == 1 else CONTAINERS.get(shape.locality, Container.ANYWHERE)


def _within_part(shape: Shape, pool: Pool) -> bool:
    """Whether the groups of a shape need a level below the scale-up scope."""
    levels = pool.levels
    below = levels[: levels.index(pool.scale_up_level)]
    return shape.group_size > 1 and shape.group_level in below and shape.group_level != "gpu"


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key of a name with its numbers as numbers: node-2 before node-10."""
    return tuple((0, int(piece), piece) if piece.isdigit() else (1, 0, piece) for piece in re.findall(r"\d+|\D+", name))


def read_pool(fabric: Fabric, pool: Pool, domains: DomainNumbers | None = None) -> PoolScopes:
    """Columns of the scopes of one pool; positions in a scope follow its parts, else node and index."""
    table = fabric.scopes
    scopes = scopes_of(fabric, pool.index)
    free = table.free[scopes].astype(np.int64)
    names = [natural(table.name(scope)) for scope in scopes.tolist()]
    order = np.empty(len(scopes), dtype=np.int64)
    order[sorted(range(len(scopes)), key=lambda position: names[position])] = np.arange(len(scopes))
    parts: tuple[tuple[int, ...], ...] = ()
    if pool.wiring.groups:
        parts = tuple(tuple(len(part) for part in table.sub_scopes(scope)) for scope in scopes.tolist())
    nodes: tuple[tuple[int, ...], ...] = ()
    if not parts and len(scopes) and int(table.capacity[scopes].max()) > pool.gpus_per_node:
        nodes = tuple(_by_node(fabric, scope) for scope in scopes.tolist())
    arranged: dict[int, tuple[int, ...]] = {}
    if domains is not None and domains.masks and not parts:
        arranged = domains.arranged(scopes)
        if arranged or nodes:
            nodes = tuple(tuple(len(part) for part in domains.parts(scope)) for scope in scopes.tolist())
    billed = billed_by_node(pool)
    return PoolScopes(
        free=free,
        capacity=table.capacity[scopes].astype(np.int64),
        leaf=table.leaf[scopes].astype(np.int64),
        spine=table.spine[scopes].astype(np.int64),
        fabric=table.fabric[scopes].astype(np.int64),
        order=order,
        parts=parts,
        nodes=nodes,
        node_price=ceil_money(float(pool.price_per_node or 0.0)) if billed else None,
        domains={} if domains is None or not domains.kinds else domains.of_scopes(scopes, split=bool(nodes)),
        arranged=arranged,
    )


def _by_node(fabric: Fabric, scope: int) -> tuple[int, ...]:
    counts: dict[str, int] = {}
    for gpu in fabric.scopes.free_gpus(scope):
        counts[gpu.node] = counts.get(gpu.node, 0) + 1
    return tuple(counts.values())

"""Room that would make a plan possible: the fewest GPUs to free, and the fewest empty scopes to add to one pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.solve import cpsat
from planner.solve.domains import PINNED
from planner.solve.instance import Instance, IntArray, PoolScopes
from planner.solve.model import build
from planner.solve.program import add_term
from planner.solve.repair import EVENLY, NEW_LEAF, Added, Asker

MOST_NODES = 4096
"""More nodes than this are not worth proposing."""

MOST_COUNTED = 96
"""More nodes than this are not tried where replicas are counted node by node."""

MOST_LEAVES = 3
"""Leaves that new nodes are tried on, where it matters on which they are."""


def freed(asker: Asker, instance: Instance) -> Iterator[tuple[int, int, int]]:
    """Fewest GPUs to free, and in which scopes; pools with parts are taken as they are, and those billed by node where money is limited."""
    limited = instance.budget.per_hour is not None

    def emptied(pool: PoolScopes) -> PoolScopes:
        if pool.parts or (limited and pool.node_price is not None) or _split_scopes(pool):
            return pool
        return replace(pool, free=pool.capacity, untouched=pool.free, nodes=(), node_price=None, _slots={})

    objective = instance.objective if instance.objective == "throughput" else "cost"
    model = build(replace(instance, pools=tuple(map(emptied, instance.pools)), objective=objective), asker.rules)
    terms: dict[int, int] = {}
    for pool in model.pools:
        if pool.layout.scopes.untouched is not None:
            for key, variable in pool.opened.items():
                add_term(terms, variable, pool.layout.cells[key.cell].classes[key.group].openings[key.opening].nodes)
    if not terms:
        return
    result = cpsat.minimise(model.program, terms, asker.limits)
    if result.values is None:
        return
    for pool in model.pools:
        if pool.layout.scopes.untouched is None:
            continue
        taken: dict[tuple[int, int], int] = {}
        for key, variable in pool.opened.items():
            group = pool.layout.cells[key.cell].classes[key.group]
            for _ in range(result.values[variable]):
                start = taken.get((key.cell, key.group), 0)
                taken[key.cell, key.group] = start + 1
                if group.openings[key.opening].nodes:
                    yield pool.layout.pool, group.members[start], group.openings[key.opening].nodes


def _split_scopes(pool: PoolScopes) -> bool:
    """Whether some scope lies in several failure domains that replicas are counted by."""
    return any(len(set(nodes)) > 1 for scopes in pool.domains.values() for nodes in scopes)


def added(asker: Asker, instance: Instance) -> Iterator[Added]:
    """Fewest empty scopes to add to each pool alone, where the leaf matters on the best of those tried."""
    for number in sorted(set(instance.shapes.pool.tolist())):
        pool = instance.pools[number]
        if len(pool) == 0:
            continue
        found: list[Added] = []
        for leaf in _leaves(instance, number):

            def enough(more: int, pool: int = number, leaf: int | None = leaf) -> bool:
                grown = (*instance.pools[:pool], widened(instance.pools[pool], more, leaf), *instance.pools[pool + 1 :])
                return asker.possible(replace(instance, pools=grown))

            most = MOST_COUNTED if set(instance.kinds_of_pool(number)) - {"leaf"} else MOST_NODES
            scopes = _least(enough, min([most, *(item.scopes - 1 for item in found)]))
            if scopes is not None:
                found.append(Added(number, scopes, leaf))
        yield from found[-1:]


def _least(enough: Callable[[int], bool], most: int) -> int | None:
    """Least number from 1 to `most` that is enough, by doubling and bisection; None where `most` is not."""
    below, high = 0, 1
    while high < most and not enough(high):
        below, high = high, 2 * high
    if high >= most:
        high = most
        if below >= most or not enough(most):
            return None
    while high - below > 1:
        middle = (below + high) // 2
        below, high = (below, middle) if enough(middle) else (middle, high)
    return high


def _leaves(instance: Instance, number: int) -> Sequence[int | None]:
    """Leaves to try new scopes on: those with most room, and where rules speak of leaves a new one, and all of them alike."""
    pool = instance.pools[number]
    kinds = instance.kinds_of_pool(number)
    pinned = bool(((instance.shapes.groups > 1) & (instance.shapes.container > 0) & (instance.shapes.pool == number)).any())
    leaves = sorted(set(pool.leaf.tolist()))
    if ("leaf" not in kinds and not pinned) or (len(leaves) == 1 and "leaf" not in kinds):
        return (None,)
    room = {leaf: int(pool.free[pool.leaf == leaf].sum()) for leaf in leaves}
    fullest = sorted(leaves, key=lambda leaf: (-room[leaf], leaf))[:MOST_LEAVES]
    return (*fullest, NEW_LEAF, EVENLY) if "leaf" in kinds else tuple(fullest)


def widened(pool: PoolScopes, more: int, leaf: int | None = None) -> PoolScopes:
    """Give the pool with `more` empty scopes of its largest size, in failure domains of their own; `leaf` as in `Added`."""
    if not more:
        return pool
    firsts = [int(np.flatnonzero(pool.leaf == number)[0]) for number in sorted(set(pool.leaf.tolist()))]
    if leaf != EVENLY:
        firsts = [0 if leaf in {None, NEW_LEAF} else int(np.flatnonzero(pool.leaf == leaf)[0])]
    beside = np.array([firsts[number % len(firsts)] for number in range(more)], dtype=np.int64)

    def longer(column: IntArray, values: IntArray | int) -> IntArray:
        return np.concatenate([column, np.broadcast_to(np.asarray(values, dtype=np.int64), more)])

    size = int(pool.capacity.max())
    per_node = max((count for nodes in pool.nodes for count in nodes), default=size)
    part = max((count for parts in pool.parts for count in parts), default=0)
    return replace(
        pool,
        free=longer(pool.free, size),
        capacity=longer(pool.capacity, size),
        leaf=longer(pool.leaf, int(pool.leaf.max()) + 1 if leaf == NEW_LEAF else pool.leaf[beside]),
        spine=longer(pool.spine, pool.spine[beside]),
        fabric=longer(pool.fabric, pool.fabric[beside]),
        order=longer(pool.order, np.arange(len(pool), len(pool) + more)),
        parts=(*pool.parts, *((part,) * (size // part) for _ in range(more))) if part else pool.parts,
        nodes=(*pool.nodes, *((per_node,) * (size // per_node) for _ in range(more))) if pool.nodes else (),
        domains={
            kind: (
                *scopes,
                *(
                    _new_domains(kind, scopes[place], number, size // per_node, new=leaf == NEW_LEAF)
                    for number, place in enumerate(beside.tolist())
                ),
            )
            for kind, scopes in pool.domains.items()
        },
        _slots={},
    )


NEW_DOMAIN = 1 << 40
"""Above the number of any failure domain that is there."""


def _new_domains(kind: str, beside: tuple[int, ...], number: int, nodes: int, *, new: bool) -> tuple[int, ...]:
    if kind == "leaf":
        return (NEW_DOMAIN if new else beside[0],) * nodes
    if kind.startswith(PINNED):
        return (0,) * nodes
    return tuple(NEW_DOMAIN + number * nodes + node for node in range(nodes))

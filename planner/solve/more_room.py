"""Room that would make a plan possible: the fewest GPUs to free, and the fewest empty scopes to add to one pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.plan.outcome import Status
from planner.solve.asker import Asker, gallop, loads_alone
from planner.solve.domains import PINNED
from planner.solve.instance import Instance, IntArray, PoolScopes
from planner.solve.model import Model
from planner.solve.program import Program, add_term
from planner.solve.repair import EVENLY, NEW_LEAF, Added, Freed

MOST_NODES = 4096
"""More nodes than this are not worth proposing."""

MOST_COUNTED = 96
"""More nodes than this are not tried where replicas are counted node by node."""

MOST_LEAVES = 3
"""Leaves that new nodes are tried on, where it matters on which they are."""


def freed(asker: Asker, instance: Instance) -> Freed:
    """Fewest GPUs to free, and in which scopes; pools with parts are taken as they are, and those billed by node where money is limited."""
    limited = instance.budget.per_hour is not None

    def emptied(pool: PoolScopes) -> PoolScopes:
        if pool.parts or (limited and pool.node_price is not None) or _split_scopes(pool):
            return pool
        return replace(pool, free=pool.capacity, untouched=pool.free, nodes=(), node_price=None, _slots={})

    objective = instance.objective if instance.objective == "throughput" else "cost"
    pools = tuple(map(emptied, instance.pools))
    alone = loads_alone(replace(instance, pools=tuple(replace(pool, untouched=None) for pool in pools), objective=objective))
    if asker.possible(alone) is False:
        # Not even all of them would do.
        return Freed()
    model = asker.build(replace(instance, pools=pools, objective=objective))
    terms = _extra(model)
    if not terms:
        return Freed()
    result = asker.minimise(model.program, terms)
    if result.values is None:
        return Freed()
    return Freed(tuple(_places(model, result.values)), result.bound or 0)


def _extra(model: Model) -> dict[int, int]:
    """GPUs that are not free yet and offered by the openings of a model, as a linear expression."""
    terms: dict[int, int] = {}
    for pool in model.pools:
        if pool.layout.scopes.untouched is not None:
            for key, variable in pool.opened.items():
                add_term(terms, variable, pool.layout.cells[key.cell].classes[key.group].openings[key.opening].nodes)
    return terms


def _places(model: Model, values: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Pool, scope and GPUs of every scope in which a solution frees some."""
    for pool in model.pools:
        if pool.layout.scopes.untouched is None:
            continue
        taken: dict[tuple[int, int], int] = {}
        for key, variable in pool.opened.items():
            group = pool.layout.cells[key.cell].classes[key.group]
            for _ in range(values[variable]):
                start = taken.get((key.cell, key.group), 0)
                taken[key.cell, key.group] = start + 1
                if group.openings[key.opening].nodes:
                    yield pool.layout.pool, group.members[start], group.openings[key.opening].nodes


def _split_scopes(pool: PoolScopes) -> bool:
    """Whether some scope lies in several failure domains that replicas are counted by."""
    return any(len(set(nodes)) > 1 for scopes in pool.domains.values() for nodes in scopes)


def added(asker: Asker, instance: Instance, number: int) -> Added | None:
    """Fewest empty scopes to add to one pool, where the leaf matters on the best of those tried; None where none are known to help.

    The linear program of loads and room alone tells how many are needed at least, wherever they hang and whatever the rules.
    """
    bare = loads_alone(instance)
    program, terms = _offered(asker, bare, number, None)
    start = asker.bound(program, terms)
    if start is None:
        return None
    start = max(1, start)
    leaves = _leaves(instance, number)
    guess = start
    if not _counted(instance, number):
        leaf = leaves[0]
        same = leaf is None and _same_question(instance, bare)
        found = asker.minimise(*((program, terms) if same else _offered(asker, instance, number, leaf)))
        if found.status is Status.INFEASIBLE:
            return None
        if found.objective is not None:
            # What is ruled out on one leaf is not ruled out on several: there only loads and room alone tell.
            ruled = found if leaf is None or found.objective <= start else asker.minimise(program, terms)
            return _told(number, found.objective, leaf, max(start, (ruled.bound or 0) if ruled is not found or leaf is None else 0))
        guess += start // 50
    most = MOST_COUNTED if set(instance.kinds_of_pool(number)) - {"leaf"} else MOST_NODES
    best: Added | None = None
    for leaf in leaves:

        def enough(more: int, leaf: int | None = leaf) -> bool | None:
            return asker.possible(with_scopes(instance, number, more, leaf))

        found_scopes, proved = gallop(enough, start, most if best is None else min(most, best.scopes - 1), guess if best is None else None)
        if found_scopes is not None:
            best = _told(number, found_scopes, leaf, proved if leaves == (None,) else start)
        if best is not None and best.scopes == start:
            break
    return best


def _counted(instance: Instance, number: int) -> bool:
    """Whether new scopes cannot be offered to the solver for a price: replicas are counted by failure domain, or nodes are billed whole under a limit."""
    billed = instance.budget.per_hour is not None and instance.pools[number].node_price is not None
    return billed or any(rule.kinds for rule in instance.rules)


def _told(pool: int, scopes: int, leaf: int | None, proved: int) -> Added:
    return Added(pool, scopes, leaf, proved if proved < scopes else None)


def _same_question(instance: Instance, bare: Instance) -> bool:
    """Whether a question asks nothing but loads and room."""
    same = instance.rules == bare.rules and instance.limits == bare.limits and instance.budget == bare.budget
    return same and not bool(((instance.shapes.groups > 1) & (instance.shapes.container > 0)).any())


def _offered(asker: Asker, instance: Instance, number: int, leaf: int | None) -> tuple[Program, dict[int, int]]:
    """The question with empty scopes on a leaf of a pool for the solver to open, and how many it opens as a linear expression."""
    pool = instance.pools[number]
    more = _most_useful(instance, number)
    grown = replace(
        widened(pool, more, leaf),
        untouched=np.concatenate([pool.free, np.zeros(more, dtype=np.int64)]),
        # A scope of several nodes is added whole.
        nodes=(),
        node_price=None,
    )
    asked = replace(instance, pools=(*instance.pools[:number], grown, *instance.pools[number + 1 :]))
    model = asker.build(asked if asked.objective == "throughput" else replace(asked, objective="cost"))
    terms = dict.fromkeys(_extra(model), 1)
    for mine in model.pools:
        for key, variable in mine.opened.items():
            group = mine.layout.cells[key.cell].classes[key.group]
            if variable in terms and group.openings[key.opening].free < group.free:
                # An empty scope is there with all its GPUs or not at all.
                model.program.upper[variable] = 0
    return model.program, terms


def _most_useful(instance: Instance, number: int) -> int:
    """Empty scopes of a pool that hold all that its shapes can serve, each deployment by the shape that needs fewest, at most `MOST_NODES`."""
    columns, size = instance.shapes, int(instance.pools[number].capacity.max())
    fewest: dict[int, int] = {}
    for shape in instance.of_pool(number).tolist():
        slots = size // int(columns.size[shape])
        if slots and columns.capacity[shape] > 0:
            deployment = int(columns.deployment[shape])
            groups = -(-int(instance.loads[deployment]) // int(columns.capacity[shape])) * int(columns.groups[shape])
            fewest[deployment] = min(fewest.get(deployment, MOST_NODES), -(-groups // slots))
    # With loads in buckets no single shape tells.
    return MOST_NODES if instance.slicing else min(MOST_NODES, max(1, sum(fewest.values())))


def with_scopes(instance: Instance, number: int, more: int, leaf: int | None) -> Instance:
    """The question with more empty scopes in one pool."""
    grown = widened(instance.pools[number], more, leaf)
    return replace(instance, pools=(*instance.pools[:number], grown, *instance.pools[number + 1 :]))


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

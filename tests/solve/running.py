"""Instances with replicas that run already, and brute force over what stays of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from planner.solve.instance import Instance, PoolScopes, Seat
from tests.solve.exhaustive import nodes_of, packs
from tests.solve.fleets import ShapeRow, instance_of, random_instance

Places = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Running:
    """One replica that runs: what it is, and its positions in the scopes of its pool."""

    row: ShapeRow
    places: Places


def running_instance(
    rows: Sequence[ShapeRow], running: Sequence[Running], loads: Sequence[int], pools: Sequence[PoolScopes], price: int = 1, **more
) -> Instance:
    """The instance over `rows` and over the shapes of what runs; each replica sits in a seat of its own."""
    kept = list(dict.fromkeys(one.row for one in running))
    instance = instance_of([*rows, *kept], loads, pools, **more)
    seats = tuple(Seat(len(rows) + kept.index(one.row), (one.places,)) for one in running)
    return replace(instance, seats=seats, move_price=price)


def _left(pool: PoolScopes, staying: Sequence[Places], opened: Sequence[tuple[int, int]] | None) -> tuple:
    """Scopes with what is left of them, as `packs` takes them; only the opened nodes count where some are given."""
    found = []
    for scope in range(len(pool)):
        taken = {position for places in staying for where, positions in places if where == scope for position in positions}
        runs = pool.parts[scope] if pool.parts else nodes_of(pool, scope)
        start, blocks = 0, []
        for number, run in enumerate(runs):
            mine = sum(1 for position in range(start, start + run) if position not in taken)
            shut = opened is not None and (scope, 0 if pool.parts else number) not in opened
            blocks.append(0 if shut else mine)
            start += run
        left = tuple(sorted(blocks)) if pool.parts else (sum(blocks),)
        found.append((int(pool.leaf[scope]), int(pool.spine[scope]), int(pool.fabric[scope]), left))
    return tuple(found)


def _nodes_used(pool: PoolScopes, staying: Sequence[Places]) -> set[tuple[int, int]]:
    used = set()
    for places in staying:
        for scope, positions in places:
            owners = [0] * int(pool.free[scope])
            if not pool.parts:
                owners = [node for node, count in enumerate(nodes_of(pool, scope)) for _ in range(count)]
            used |= {(scope, owners[position]) for position in positions}
    return used


def _pool_money(instance: Instance, pool: int, counts: Sequence[int], staying: Sequence[Places]) -> int | None:
    columns, scopes = instance.shapes, instance.pools[pool]
    fresh = [shape for shape in range(len(columns)) if columns.pool[shape] == pool and not instance.kept[shape]]
    replicas = tuple(
        (int(columns.size[s]), int(columns.groups[s]), int(columns.container[s]), bool(columns.within_part[s]))
        for s in sorted(fresh, key=lambda s: (-int(columns.groups[s]), -int(columns.size[s]), s))
        for _ in range(counts[s])
    )
    if scopes.node_price is None:
        own = [shape for shape in range(len(columns)) if columns.pool[shape] == pool]
        return sum(int(columns.price[s]) * counts[s] for s in own) if packs(_left(scopes, staying, None), replicas) else None
    paid = _nodes_used(scopes, staying)
    nodes = [(scope, 0) for scope in range(len(scopes))]
    if not scopes.parts:
        nodes = [(scope, node) for scope in range(len(scopes)) for node in range(len(nodes_of(scopes, scope)))]
    others = [node for node in nodes if node not in paid]
    for more in range(len(others) + 1):
        for chosen in combinations(others, more):
            if packs(_left(scopes, staying, [*paid, *chosen]), replicas):
                return scopes.node_price * (len(paid) + more)
    return None


def best_with_moves(instance: Instance) -> tuple[int, int] | None:
    """Least money with moves, and the least moves at that; None when no plan exists."""
    columns = instance.shapes
    fresh = [shape for shape in range(len(columns)) if not instance.kept[shape]]
    where = {int(source): shape for shape, source in enumerate(instance.source)}
    found: tuple[int, int] | None = None
    bounds = [-(-int(instance.loads[columns.deployment[s]]) // int(columns.capacity[s])) for s in fresh]
    bounds = [max(bound, instance.limits[int(columns.deployment[s])].minimum) for bound, s in zip(bounds, fresh, strict=True)]
    known: dict[tuple, int | None] = {}
    for stay in product((False, True), repeat=len(instance.seats)):
        staying = [(where[seat.source], seat.replicas[0]) for seat, stays in zip(instance.seats, stay, strict=True) if stays]
        for wanted in product(*(range(bound + 1) for bound in bounds)):
            counts = [0] * len(columns)
            for shape, count in zip(fresh, wanted, strict=True):
                counts[shape] = count
            for shape, _ in staying:
                counts[shape] += 1
            if not _allowed(instance, counts):
                continue
            money = (instance.move_price or 0) * sum(wanted)
            for pool in range(len(instance.pools)):
                own = [places for shape, places in staying if columns.pool[shape] == pool]
                key = (pool, tuple(own), tuple(count if columns.pool[s] == pool else 0 for s, count in enumerate(counts)))
                if key not in known:
                    known[key] = _pool_money(instance, pool, counts, own)
                part = known[key]
                if part is None:
                    break
                money += part
            else:
                value = (money, sum(wanted))
                found = value if found is None else min(found, value)
    return found


def _allowed(instance: Instance, counts: Sequence[int]) -> bool:
    columns = instance.shapes
    for deployment in range(instance.deployments):
        own = instance.of_deployment(deployment).tolist()
        if sum(int(columns.capacity[s]) * counts[s] for s in own) < instance.loads[deployment]:
            return False
        replicas, limits = sum(counts[s] for s in own), instance.limits[deployment]
        if replicas < limits.minimum or (limits.maximum is not None and replicas > limits.maximum):
            return False
        if limits.one_shape and len({int(columns.form[s]) for s in own if counts[s]}) > 1:
            return False
    return True


def random_running(seed: int) -> Instance:
    """A tiny question of `random_instance` in which some replicas run, wherever there was room for them; also of shapes that are not on the menu."""
    draw = random.Random(seed)
    plain = random_instance(seed, "cost")
    rows = [_row(plain, shape) for shape in range(len(plain.shapes))]
    free = {(pool, scope): list(range(int(count))) for pool, scopes in enumerate(plain.pools) for scope, count in enumerate(scopes.free)}
    running = []
    for row in draw.choices(rows, k=draw.randint(1, 4)):
        changed = replace(row, capacity=max(1, row.capacity + draw.choice([0, 0, -1, 1])), groups=1, within_part=False)
        places = list(_seat(draw, row, free))
        if places:
            running.append(Running(replace(changed, size=row.size * row.groups), tuple(places)))
    limits = [replace(limit, maximum=limit.maximum and limit.maximum + 1) for limit in plain.limits]
    return running_instance(rows, running, plain.loads.tolist(), plain.pools, draw.choice([0, 1, 3, 10, 1000]), limits=limits)


def _row(instance: Instance, shape: int) -> ShapeRow:
    columns = instance.shapes
    names = ("size", "capacity", "price", "deployment", "pool", "groups", "container", "within_part", "comm", "tpot", "ttft")
    return ShapeRow(**{name: type(getattr(ShapeRow(1), name))(getattr(columns, name)[shape]) for name in names})


def _seat(draw: random.Random, row: ShapeRow, free: dict[tuple[int, int], list[int]]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Take GPUs for one replica at random, each group inside one scope; nothing where there is no room."""
    taken: dict[tuple[int, int], list[int]] = {}
    for _ in range(row.groups):
        fitting = [key for key, left in free.items() if key[0] == row.pool and len(left) - len(taken.get(key, [])) >= row.size]
        if not fitting:
            return
        key = draw.choice(fitting)
        left = [position for position in free[key] if position not in taken.get(key, [])]
        taken.setdefault(key, []).extend(draw.sample(left, row.size))
    for key, positions in sorted(taken.items()):
        free[key] = [position for position in free[key] if position not in positions]
        yield key[1], tuple(sorted(positions))

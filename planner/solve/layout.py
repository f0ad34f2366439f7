"""How one pool offers room to groups: which groups it is asked for, in which cells, and whether nested rows tell all.

Three cases, from small to large models:

- groups whose sizes divide one another and replicas that may sit anywhere: one cell, nested rows, whatever the number of GPUs;
- replicas that must keep their groups under one leaf or spine: the same rows with one more per such kind, as long as the kinds nest
  (`pins_nest`), else one cell per leaf (or spine) with its own rows;
- sizes that do not divide one another, or groups that need a whole pair or mesh: fill patterns per class of equal scopes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from planner.solve.instance import Container, Instance, IntArray, PoolScopes, Seat
from planner.solve.seats import remaining, scopes_used


class Item(NamedTuple):
    """A kind of group: its size in GPUs, and whether it must sit inside one part (pair or mesh) of its scope."""

    size: int
    within_part: bool


class Pin(NamedTuple):
    """A kind of replica that must stay together: `groups` groups of `size` inside one container."""

    size: int
    container: Container
    groups: int


class Opening(NamedTuple):
    """One way to use a scope: `nodes` of its nodes opened (or, where freeing is asked about, GPUs freed), which offer `free` GPUs.

    Beside replicas that stay, `bins` is the room left by part of the scope (one part where it has none), in the scope's own order.
    """

    nodes: int
    free: int
    bins: tuple[int, ...] = ()

    def parts(self, group: ScopeClass) -> tuple[int, ...]:
        """Room by pair or mesh, the largest first; empty where the scope has none."""
        return tuple(sorted((room for room in self.bins if room), reverse=True)) if group.seated and group.parts else group.parts


@dataclass(frozen=True)
class ScopeClass:
    """Scopes of one cell that offer the same room; `members` are their positions in the pool, in canonical order.

    A scope on which replicas may stay (`seated`) is a class of its own.
    """

    free: int
    capacity: int
    parts: tuple[int, ...]
    openings: tuple[Opening, ...]
    members: tuple[int, ...]
    seated: bool = False

    @property
    def whole(self) -> bool:
        """Whether nothing in these scopes is in use, so that keeping one untouched keeps a whole domain."""
        return self.free == self.capacity > 1


class Block(NamedTuple):
    """GPUs of one cell that fail together: `free` of them on `nodes` of the cell's scope, in the failure domains `labels` by kind."""

    free: int
    nodes: tuple[int, ...]
    labels: tuple[tuple[str, int], ...]

    def label(self, kind: str) -> int:
        """Failure domain of a kind that the block lies in."""
        return dict(self.labels)[kind]


@dataclass(frozen=True)
class Cell:
    """The scopes that one set of supply rows speaks of: a leaf, a spine, a fabric or the whole pool; `within` numbers its containers.

    Where replicas are counted by failure domain, the GPUs of a cell fail together or the cell is one scope whose `blocks` do.
    """

    within: dict[Container, int]
    members: IntArray
    classes: tuple[ScopeClass, ...]
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True)
class PoolLayout:
    """The room of one pool, arranged for the groups asked of it."""

    pool: int
    scopes: PoolScopes
    items: tuple[Item, ...]
    nested: bool
    pins: tuple[Pin, ...]
    cells: tuple[Cell, ...]

    @property
    def pinned_by_rows(self) -> bool:
        """Whether rows over the whole pool state the pins exactly, so that no leaf has variables of its own."""
        return bool(self.pins) and len(self.cells) == 1


def item_of(instance: Instance, shape: int) -> Item:
    """Kind of group that a shape consists of."""
    columns = instance.shapes
    return Item(int(columns.size[shape]), bool(columns.within_part[shape]))


def container_ids(scopes: PoolScopes, container: Container) -> IntArray:
    """Which container of a kind each scope lies in [D]; zeros when anywhere will do."""
    if container is Container.LEAF:
        return scopes.leaf
    if container is Container.SPINE:
        return scopes.spine
    if container is Container.FABRIC:
        return scopes.fabric
    return np.zeros(len(scopes), dtype=np.int64)


def pin_of(instance: Instance, shape: int) -> Pin | None:
    """Pin of a shape, or None when its one group, or the pool's only container, keeps it together anyway."""
    columns = instance.shapes
    container = Container(int(columns.container[shape]))
    if container is Container.ANYWHERE or columns.groups[shape] == 1:
        return None
    ids = container_ids(instance.pools[int(columns.pool[shape])], container)
    if len(ids) == 0 or bool((ids == ids[0]).all()):
        return None
    return Pin(int(columns.size[shape]), container, int(columns.groups[shape]))


def sizes_nest(items: tuple[Item, ...]) -> bool:
    """Whether nested rows are exact: sizes divide one another and no group larger than one GPU needs a part of its own."""
    sizes = sorted({item.size for item in items})
    return not any(item.within_part and item.size > 1 for item in items) and all(large % small == 0 for small, large in pairwise(sizes))


def pin_order(pins: tuple[Pin, ...]) -> tuple[Pin, ...]:
    """Order in which kinds are placed: large groups first, single groups last among equals, tight containers before wide ones."""
    return tuple(sorted(pins, key=lambda pin: (-pin.size, pin.groups == 1, -pin.container, -pin.groups)))


def units_taken(earlier: Pin, later: Pin) -> int | None:
    """Room for how many replicas of kind `later` one replica of `earlier` removes wherever it goes; None when that depends on where.

    A replica that stays inside one of the containers of `later` removes groups x size / later.size groups at once, else each group removes
    size / later.size in its own container. The loss is the same everywhere when `later.groups` divides it.
    """
    each = earlier.size // later.size
    together = each * earlier.groups if earlier.container >= later.container else each
    if together % later.groups:
        return None
    return each * earlier.groups // later.groups


def kind_of(instance: Instance, shape: int) -> Pin:
    """Kind a shape is placed as: its pin, or single groups that go anywhere one by one."""
    pin = pin_of(instance, shape)
    # One group lies in one scope, hence inside whatever container: as tight as can be.
    return pin if pin is not None else Pin(int(instance.shapes.size[shape]), Container.LEAF, 1)


def pins_nest(kinds: tuple[Pin, ...]) -> bool:
    """Whether every kind placed before another removes the same room from it wherever it goes; `kinds` as `pin_order` sorts them."""
    return all(
        units_taken(earlier, later) is not None for position, later in enumerate(kinds) if later.groups > 1 for earlier in kinds[:position]
    )


def pin_slots(scopes: PoolScopes, pin: Pin) -> int:
    """Replicas of a kind that the empty pool holds: sum over containers of floor(groups of that size / groups per replica)."""
    ids = container_ids(scopes, pin.container)
    held = np.bincount(ids - ids.min(), weights=scopes.free // pin.size)
    return int((held.astype(np.int64) // pin.groups).sum())


def _openings(scopes: PoolScopes, scope: int) -> tuple[Opening, ...]:
    """Ways to use one scope; opening the fullest nodes first offers most, so only those are listed."""
    free = int(scopes.free[scope])
    if scopes.untouched is not None:
        now = int(scopes.untouched[scope])
        return tuple(Opening(count - now, count) for count in range(now, free + 1) if count)
    nodes = sorted((count for count in scopes.nodes[scope] if count), reverse=True) if scopes.nodes else []
    if scopes.node_price is None or len(nodes) < 2:
        return (Opening(1, free),)
    sums = np.cumsum(nodes)
    return tuple(Opening(opened + 1, int(offered)) for opened, offered in enumerate(sums))


def _classes(scopes: PoolScopes, members: IntArray, seats: Mapping[int, Sequence[Seat]]) -> tuple[ScopeClass, ...]:
    groups: dict[tuple[int, int, tuple[int, ...], tuple[Opening, ...], int], list[int]] = {}
    for scope in members[np.argsort(scopes.order[members], kind="stable")].tolist():
        free, capacity = int(scopes.free[scope]), int(scopes.capacity[scope])
        if free:
            parts = tuple(sorted((count for count in scopes.parts[scope] if count), reverse=True)) if scopes.parts else ()
            openings = _openings(scopes, scope) if scope not in seats else _around(scopes, scope, seats[scope])
            groups.setdefault((free, capacity, parts, openings, scope if scope in seats else -1), []).append(scope)
    return tuple(
        ScopeClass(free, capacity, parts, openings, tuple(found), seated=seated >= 0)
        for (free, capacity, parts, openings, seated), found in sorted(groups.items())
    )


def _around(scopes: PoolScopes, scope: int, seats: Sequence[Seat]) -> tuple[Opening, ...]:
    """Ways to use a scope beside the replicas that may stay on it; the nodes of a pool billed by node are counted by themselves."""
    return tuple(Opening(0, sum(room), room) for room in remaining(scopes, scope, seats))


def _seats_by_scope(instance: Instance, pool: int) -> dict[int, list[Seat]]:
    found: dict[int, list[Seat]] = {}
    for _, _, seat in instance.seats_of_pool(pool):
        for scope in scopes_used(seat):
            found.setdefault(scope, []).append(seat)
    return found


def _labels(scopes: PoolScopes, kinds: tuple[str, ...], scope: int) -> list[tuple[tuple[str, int], ...]]:
    """Failure domains of every node of a scope; of a scope that lies in one domain of each kind, once."""
    found = list(zip(*(scopes.domains[kind][scope] for kind in kinds), strict=True))
    labels = [tuple(zip(kinds, numbers, strict=True)) for numbers in found]
    return labels if len(set(labels)) > 1 else labels[:1]


def _blocks(scopes: PoolScopes, kinds: tuple[str, ...], members: IntArray) -> tuple[Block, ...]:
    if not kinds:
        return ()
    first = int(members[0])
    labels = _labels(scopes, kinds, first)
    if len(labels) == 1:
        return (Block(int(scopes.free[members].sum()), (), labels[0]),)
    nodes: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for node, label in enumerate(labels):
        nodes.setdefault(label, []).append(node)
    return tuple(Block(sum(scopes.nodes[first][node] for node in own), tuple(own), label) for label, own in sorted(nodes.items()))


def _cell_keys(scopes: PoolScopes, tightest: Container, kinds: tuple[str, ...]) -> list[tuple[int, ...]]:
    """What tells the cells of a pool apart: the tightest container, the failure domains, and the scope itself where these split it."""
    containers = container_ids(scopes, tightest).tolist()
    if not kinds:
        return [(container,) for container in containers]
    keys = []
    for scope, container in enumerate(containers):
        labels = _labels(scopes, kinds, scope)
        keys.append((container, *(number for _, number in labels[0])) if len(labels) == 1 else (container, -1, scope))
    return keys


def lay_out(instance: Instance, pool: int) -> PoolLayout:
    """Arrange the room of one pool for the shapes the instance has on it."""
    scopes = instance.pools[pool]
    shapes = instance.fresh_of_pool(pool).tolist()
    seats = _seats_by_scope(instance, pool)
    items = tuple(sorted({item_of(instance, shape) for shape in shapes}, reverse=True))
    kinds = pin_order(tuple({kind_of(instance, shape) for shape in shapes}))
    pins = tuple(kind for kind in kinds if kind.groups > 1)
    nested = sizes_nest(items)
    failing = instance.kinds_of_pool(pool)
    everywhere = np.arange(len(scopes), dtype=np.int64)
    by_rows = nested and scopes.node_price is None and scopes.untouched is None and not seats and pins_nest(kinds)
    if not failing and (not pins or by_rows):
        return PoolLayout(pool, scopes, items, nested, pins, (Cell({}, everywhere, _classes(scopes, everywhere, seats)),))
    tightest = max((pin.container for pin in pins), default=Container.ANYWHERE)
    cells: dict[tuple[int, ...], list[int]] = {}
    for scope, key in enumerate(_cell_keys(scopes, tightest, failing)):
        cells.setdefault(key, []).append(scope)
    found = []
    for _, own in sorted(cells.items()):
        members = np.array(own, dtype=np.int64)
        within = {
            container: int(container_ids(scopes, container)[members[0]])
            for container in (Container.LEAF, Container.SPINE, Container.FABRIC)
            if container <= tightest
        }
        found.append(Cell(within, members, _classes(scopes, members, seats), _blocks(scopes, failing, members)))
    return PoolLayout(pool, scopes, items, nested, pins, tuple(found))

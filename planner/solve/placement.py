"""From counts to scopes and positions: largest groups first, pinned replicas before free ones, best fit, canonical order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from planner.solve.allocation import PlacementError
from planner.solve.instance import Container, Instance, IntArray, PoolScopes
from planner.solve.layout import Item, Pin, container_ids, item_of, kind_of, pin_of, pin_order
from planner.solve.located_groups import located_replicas
from planner.solve.model import Model, Opened, PoolVariables
from planner.solve.room import Room
from planner.solve.seating import Group, Placed, PlacedGroup, in_order, seat_groups

__all__ = ["Placed", "PlacedGroup", "place", "touched_whole_scopes"]


class PoolPlacement:
    """Placement of one pool's replicas."""

    def __init__(self, model: Model, pool: PoolVariables, values: Sequence[int]) -> None:
        self.model, self.pool, self.values = model, pool, values
        self.instance: Instance = model.instance
        self.layout = pool.layout
        self.scopes: PoolScopes = pool.layout.scopes
        self.replicas: list[int] = []
        self.groups: list[list[Group]] = []
        self.offered, self.nodes_open = self._opened()
        self.staying = list(self._staying())
        self.held: dict[int, set[int]] = defaultdict(set)
        for replica in self.staying:
            for group in replica.groups:
                self.held[group.scope].update(group.positions)

    def _opened(self) -> tuple[IntArray, dict[int, int]]:
        """Free GPUs that each scope may use, and how many nodes of it where opening them is counted."""
        offered = np.zeros(len(self.scopes), dtype=np.int64)
        nodes: dict[int, int] = {}
        for cell_index, cell in enumerate(self.layout.cells):
            for group_index, group in enumerate(cell.classes):
                if not self.pool.gated(group):
                    offered[list(group.members)] = group.free
                    continue
                waiting = list(group.members)
                for number in range(len(group.openings) - 1, -1, -1):
                    for _ in range(self.values[self.pool.opened[Opened(cell_index, group_index, number)]]):
                        scope = waiting.pop(0)
                        offered[scope] = group.openings[number].free
                        if not group.seated:
                            nodes[scope] = group.openings[number].nodes
        return offered, nodes

    def _staying(self) -> Iterator[Placed]:
        """Replicas that stay on the GPUs they have, the first ones of each seat."""
        for number, shape, seat in self.instance.seats_of_pool(self.layout.pool):
            for replica in range(self.values[self.pool.seats[number]]):
                yield Placed(shape, tuple(PlacedGroup(scope, places) for scope, places in seat.replicas[replica]), (number, replica))

    def add(self, shape: int) -> list[Group]:
        """Give the groups of one more replica of a shape, which wait for their scopes."""
        columns = self.instance.shapes
        made = [
            Group(len(self.replicas), int(columns.size[shape]), bool(columns.within_part[shape])) for _ in range(int(columns.groups[shape]))
        ]
        self.replicas.append(shape)
        self.groups.append(made)
        return made

    def place(self) -> list[Placed]:
        """Place every replica of the pool."""
        if len(self.layout.cells) > 1 or self.pool.located:
            self._by_cell()
        elif self.layout.nested:
            self._by_kind()
        else:
            waiting: dict[Item, list[Group]] = defaultdict(list)
            for shape in self.instance.fresh_of_pool(self.layout.pool).tolist():
                for _ in range(self.values[self.model.count[shape]]):
                    waiting[item_of(self.instance, shape)].extend(self.add(shape))
            self._fill_patterns(0, waiting)
        return self.seated()

    def seated(self) -> list[Placed]:
        """Replicas whose groups have their scopes on concrete GPUs, and those that stay."""
        return seat_groups(self.scopes, self.replicas, self.groups, self._blocks) + self.staying

    def _by_kind(self) -> None:
        """Nested sizes over the whole pool: kinds in their order, pinned replicas into the container with least room to spare."""
        room = Room(self.offered, self.scopes.order)
        anywhere = room.group_by(np.zeros(len(self.scopes), dtype=np.int64))
        partitions = {
            container: room.group_by(container_ids(self.scopes, container)) for container in {pin.container for pin in self.layout.pins}
        }
        of_kind: dict[Pin, list[int]] = defaultdict(list)
        for shape in self.instance.fresh_of_pool(self.layout.pool).tolist():
            if self.values[self.model.count[shape]]:
                of_kind[kind_of(self.instance, shape)].append(shape)
        for kind in pin_order(tuple(of_kind)):
            if kind.groups == 1:
                for shape in of_kind[kind]:
                    for _ in range(self.values[self.model.count[shape]]):
                        for group in self.add(shape):
                            group.scope = room.take(group.size, anywhere, 0)
                continue
            partition = partitions[kind.container]
            held = room.slots(kind.size, partition)
            for shape in of_kind[kind]:
                for _ in range(self.values[self.model.count[shape]]):
                    fitting = [(slots, container) for container, slots in held.items() if slots >= kind.groups]
                    if not fitting:
                        raise PlacementError(f"no {kind.container.name.lower()} is left for a replica that the rows allowed")
                    chosen = min(fitting)[1]
                    held[chosen] -= kind.groups
                    for group in self.add(shape):
                        group.scope = room.take(group.size, partition, chosen)

    def _by_cell(self) -> None:
        """Split groups over leaves (or spines, or failure domains) as the solution says, then fill every cell by itself."""
        room_left = {(cell, item): self.values[variable] for (cell, item), variable in self.pool.split.items()}
        waiting: list[dict[Item, list[Group]]] = [defaultdict(list) for _ in self.layout.cells]

        def assign(groups: list[Group], item: Item, cells: Sequence[int]) -> None:
            if len(self.layout.cells) == 1:
                waiting[0][item].extend(groups)
                return
            pending = list(groups)
            for cell in cells:
                while pending and room_left.get((cell, item), 0) > 0:
                    room_left[cell, item] -= 1
                    waiting[cell][item].append(pending.pop(0))
            if pending:
                raise PlacementError("the cells take fewer groups than were counted into them")

        for shape in self.instance.fresh_of_pool(self.layout.pool).tolist():
            item = item_of(self.instance, shape)
            for replica in located_replicas(self.pool.located, self.layout, shape, self.values):
                for group, (cell, counted) in zip(self.add(shape), replica, strict=True):
                    group.counted = counted
                    assign([group], item, [cell])
        everywhere = range(len(self.layout.cells))
        shapes = self.instance.fresh_of_pool(self.layout.pool).tolist()
        for container in (Container.LEAF, Container.SPINE, Container.FABRIC):
            ids = [cell.within.get(container, -1) for cell in self.layout.cells]
            for shape in shapes:
                pin = pin_of(self.instance, shape)
                if pin is None or pin.container is not container or shape in self.pool.located:
                    continue
                for chosen in sorted(set(ids)):
                    variable = self.pool.pinned.get((shape, chosen))
                    for _ in range(self.values[variable] if variable is not None else 0):
                        assign(self.add(shape), item_of(self.instance, shape), [cell for cell in everywhere if ids[cell] == chosen])
        for shape in shapes:
            if pin_of(self.instance, shape) is None and shape not in self.pool.located:
                for _ in range(self.values[self.model.count[shape]]):
                    assign(self.add(shape), item_of(self.instance, shape), everywhere)
        if not self.layout.nested:
            for cell in everywhere:
                self._fill_patterns(cell, waiting[cell])
            return
        room = Room(self.offered, self.scopes.order)
        cell_of = np.zeros(len(self.scopes), dtype=np.int64)
        for index, members in enumerate(cell.members for cell in self.layout.cells):
            cell_of[members] = index
        partition = room.group_by(cell_of)
        for index in everywhere:
            for item in self.layout.items:
                for group in waiting[index][item]:
                    group.scope = room.take(group.size, partition, index)

    def _fill_patterns(self, cell: int, waiting: dict[Item, list[Group]]) -> None:
        """Hand the groups of one cell to the scopes whose patterns have room for their kind."""
        offers: dict[Item, list[int]] = {item: [] for item in self.layout.items}
        taken: set[int] = set()
        for key, variable in self.pool.filled.items():
            if key.cell != cell or not self.values[variable]:
                continue
            alike = self.layout.cells[cell].classes[key.group]
            gated = self.pool.gated(alike)
            free = alike.openings[key.opening].free
            ready = [s for s in alike.members if s not in taken and (not gated or int(self.offered[s]) == free)]
            if len(ready) < self.values[variable]:
                raise PlacementError("more patterns were counted than scopes")
            for scope in ready[: self.values[variable]]:
                taken.add(scope)
                for item, count in zip(self.layout.items, key.pattern, strict=True):
                    offers[item].extend([scope] * count)
        for held, variable in self.pool.held.items():
            if held.cell == cell:
                offers[held.item].extend([held.scope] * self.values[variable])
        whole = (self.scopes.free == self.scopes.capacity).tolist()
        for item, groups in waiting.items():
            # Scopes already in use first: a pattern may offer more than is asked.
            ordered = sorted(offers[item], key=lambda scope: (whole[scope], int(self.scopes.order[scope])))
            if len(ordered) < len(groups):
                raise PlacementError("the patterns hold fewer groups than were counted into them")
            for group, scope in zip(groups, ordered, strict=False):
                group.scope = scope

    def _blocks(self, scope: int) -> list[list[int]]:
        """Positions of a scope that may be used, by part or else by node."""
        parts = self.scopes.parts[scope] if self.scopes.parts else ()
        nodes = self.scopes.nodes[scope] if self.scopes.nodes else ()
        counts = parts or nodes or (int(self.scopes.free[scope]),)
        starts = np.cumsum([0, *counts]).tolist()
        blocks = [list(range(start, start + count)) for start, count in zip(starts, counts, strict=False)]
        rest = int(self.scopes.free[scope]) - starts[-1]
        if rest > 0:
            blocks.append(list(range(starts[-1], starts[-1] + rest)))
        limit = self.nodes_open.get(scope)
        if limit is not None and not parts and self.scopes.node_price is not None:
            fullest = sorted(range(len(blocks)), key=lambda block: (-len(blocks[block]), block))[:limit]
            blocks = [blocks[block] for block in sorted(fullest)]
        held = self.held[scope]
        closed = {number for (where, number), opened in self.pool.node_open.items() if where == scope and not self.values[opened]}
        # Blocks keep their numbers, by which counted GPUs name them.
        return [[position for position in block if position not in held and number not in closed] for number, block in enumerate(blocks)]


def place(model: Model, values: Sequence[int]) -> tuple[Placed, ...]:
    """Put every replica of a solution on concrete scopes and positions, in order of deployment and shape.

    Raises
    ------
    PlacementError
        If the groups do not fit, which the rows exclude.
    """
    return in_order(model.instance, (replica for pool in model.pools for replica in PoolPlacement(model, pool, values).place()))


def touched_whole_scopes(instance: Instance, placed: Sequence[Placed]) -> int:
    """Count the scopes in which nothing ran before and now something does."""
    touched = {(int(instance.shapes.pool[replica.shape]), group.scope) for replica in placed for group in replica.groups}
    pools = instance.pools
    return sum(1 for pool, scope in touched if int(pools[pool].free[scope]) == int(pools[pool].capacity[scope]) > 1)

"""Write the variables and rows that count the replicas of some deployments by failure domain."""

from __future__ import annotations

from planner.solve.instance import Container, IntArray
from planner.solve.layout import Cell, PoolLayout, container_ids, pin_of
from planner.solve.located import Home, Slot
from planner.solve.model import Model, PoolVariables
from planner.solve.program import Program, add_term

NAME = "located"


def locate(model: Model) -> None:
    """Add the variables that say where replicas stand, for every deployment with a rule about it."""
    for pool in model.pools:
        for shape in model.instance.fresh_of_pool(pool.layout.pool).tolist():
            kinds = model.instance.rules_of(int(model.instance.shapes.deployment[shape])).kinds
            if not kinds:
                continue
            homes = _homes(model, pool.layout, shape, model.only.get(int(model.instance.shapes.deployment[shape])))
            if all(len(_labels(pool.layout, cells, kind)) == 1 for cells in homes for kind in kinds):
                _add_homes(model, pool, shape, homes, kinds)
            else:
                _add_slots(model, pool, shape, homes, kinds)


def _labels(layout: PoolLayout, cells: list[int], kind: str) -> set[int]:
    return {block.label(kind) for cell in cells for block in layout.cells[cell].blocks}


def _homes(model: Model, layout: PoolLayout, shape: int, only: str | None) -> list[list[int]]:
    """Sets of cells of which one holds the whole replica: single cells for one group, else the containers; no cell that it may not use."""
    cells = [cell for cell in range(len(layout.cells)) if only is None or any(_labels(layout, [cell], only))]
    if model.instance.shapes.groups[shape] == 1:
        return [[cell] for cell in cells]
    pin = pin_of(model.instance, shape)
    ids: IntArray = container_ids(layout.scopes, Container.ANYWHERE if pin is None else pin.container)
    found: dict[int, list[int]] = {}
    for cell in cells:
        found.setdefault(int(ids[layout.cells[cell].members[0]]), []).append(cell)
    return [found[container] for container in sorted(found)]


def held(cell: Cell, size: int) -> int:
    """Groups of a size that a cell holds."""
    return sum(len(group.members) * (group.free // size) for group in cell.classes)


def _add_homes(model: Model, pool: PoolVariables, shape: int, homes: list[list[int]], kinds: tuple[str, ...]) -> None:
    program, layout = model.program, pool.layout
    size, groups = int(model.instance.shapes.size[shape]), int(model.instance.shapes.groups[shape])
    found = pool.located.homes.setdefault(shape, [])
    whole = {model.count[shape]: -1}
    for cells in homes:
        room = {cell: held(layout.cells[cell], size) for cell in cells}
        most = min(sum(room.values()) // groups, program.upper[model.count[shape]])
        if not most:
            continue
        replicas = program.add_variable(0, most)
        whole[replicas] = 1
        if len(cells) == 1:
            found.append(Home(replicas, {cells[0]: {replicas: groups}}))
        else:
            taken = {cell: program.add_variable(0, count) for cell, count in room.items() if count}
            program.add_row(NAME, {replicas: -groups, **dict.fromkeys(taken.values(), 1)}, lower=0, upper=0)
            found.append(Home(replicas, {cell: {variable: 1} for cell, variable in taken.items()}))
        for kind in kinds:
            (label,) = _labels(layout, cells, kind)
            add_term(pool.located.touching.setdefault((shape, kind), {}).setdefault(label, {}), replicas, 1)
    program.add_row(NAME, whole, lower=0, upper=0)


def _add_slots(model: Model, pool: PoolVariables, shape: int, homes: list[list[int]], kinds: tuple[str, ...]) -> None:
    program, layout = model.program, pool.layout
    size, groups = int(model.instance.shapes.size[shape]), int(model.instance.shapes.groups[shape])
    slots = pool.located.slots.setdefault(shape, [])
    whole = {model.count[shape]: -1}
    for _ in range(program.upper[model.count[shape]]):
        slot = Slot(program.add_variable(0, 1))
        whole[slot.used] = 1
        if slots:
            # Slots are alike: the first ones are used first.
            program.add_row(NAME, {slots[-1].used: 1, slot.used: -1}, lower=0)
        slots.append(slot)
        placed = {slot.used: -groups}
        chosen = {slot.used: -1}
        for cells in homes:
            here = program.add_variable(0, 1) if len(homes) > 1 else slot.used
            inside: dict[int, int] = {}
            for cell in cells:
                most = min(groups, held(layout.cells[cell], size))
                if most:
                    slot.groups[cell] = program.add_variable(0, most)
                    inside[slot.groups[cell]] = placed[slot.groups[cell]] = 1
                    _split_blocks(model, pool, slot, cell, shape, kinds)
            if len(homes) > 1:
                chosen[here] = 1
                program.add_row(NAME, {**inside, here: -groups}, upper=0)
        program.add_row(NAME, placed, lower=0, upper=0)
        if len(homes) > 1:
            program.add_row(NAME, chosen, lower=0, upper=0)
        _count(program, pool, slot, shape, kinds)
    program.add_row(NAME, whole, lower=0, upper=0)


def _split_blocks(model: Model, pool: PoolVariables, slot: Slot, cell: int, shape: int, kinds: tuple[str, ...]) -> None:
    """GPUs of a slot by block, in a cell whose blocks lie in different domains of the kinds asked about."""
    program, blocks = model.program, pool.layout.cells[cell].blocks
    size, only = int(model.instance.shapes.size[shape]), model.only.get(int(model.instance.shapes.deployment[shape]))
    if all(len(_labels(pool.layout, [cell], kind)) == 1 for kind in kinds):
        return
    shared = {slot.groups[cell]: -size}
    for number, block in enumerate(blocks):
        most = min(block.free, size * program.upper[slot.groups[cell]])
        if only is not None and not block.label(only):
            most = 0
        slot.gpus[cell, number] = program.add_variable(0, most)
        shared[slot.gpus[cell, number]] = 1
    program.add_row(NAME, shared, lower=0, upper=0)


def _count(program: Program, pool: PoolVariables, slot: Slot, shape: int, kinds: tuple[str, ...]) -> None:
    """Switch on a domain as soon as the slot has a group, or a GPU of one, in it."""
    for kind in kinds:
        inside: dict[int, dict[int, int]] = {}
        for cell, variable in slot.groups.items():
            blocks = pool.layout.cells[cell].blocks
            for number, block in enumerate(blocks):
                part = slot.gpus.get((cell, number), variable)
                inside.setdefault(block.label(kind), {})[part] = program.upper[part]
        for label, parts in sorted(inside.items()):
            touched = program.add_variable(0, 1)
            for part, most in parts.items():
                program.add_row(NAME, {part: 1, touched: -most}, upper=0)
            add_term(pool.located.touching.setdefault((shape, kind), {}).setdefault(label, {}), touched, 1)

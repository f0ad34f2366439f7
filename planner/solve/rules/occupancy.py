"""Every group of GPUs finds room inside one scale-up scope, and no GPU is used twice.

Nested rows, for sizes that divide one another::

    sum_{s: k_s >= k} (k_s / k) g_s n_s <= sum_d floor(f_d / k)        for every pool and every size k asked of it

Placing a group of size j removes exactly j / k slots of every smaller size k from its scope, wherever it goes, because
floor((f - j) / k) = floor(f / k) - j / k; so the rows are necessary and sufficient, and largest-first placement cannot get stuck.

Fill patterns, for other sizes and for groups that need a pair or mesh of their own::

    sum_P w[c,P] <= N_c           for every class c of equal scopes
    sum_{c,P} P_i w[c,P] >= sum_{s of kind i} g_s n_s                  for every kind of group i

========== ========== =====================================================================
symbol     unit       meaning
========== ========== =====================================================================
n_s        replicas   replicas of shape s
g_s        groups     groups of one replica of shape s
k_s        GPUs       size of one group of shape s
f_d        GPUs       usable GPUs of scope d (in a billed class: of its opened nodes)
N_c        scopes     scopes of class c (opened scopes, where opening them is counted)
w[c,P]     scopes     scopes of class c filled by pattern P
P_i        groups     groups of kind i in pattern P
========== ========== =====================================================================

Where a pool is split into cells (leaves or spines), n_s is split by kind, y[i,cell], and the rows hold in each cell.

Source: Gilmore and Gomory, "A linear programming approach to the cutting-stock problem" (1961), for the patterns; the nested rows are the
exact special case of divisible item sizes, Coffman, Garey and Johnson, "Bin packing with divisible item sizes" (1987).
"""

from __future__ import annotations

from planner.solve.layout import Cell, Item, item_of
from planner.solve.model import Filled, Held, Model, Opened, PoolVariables
from planner.solve.patterns import maximal_patterns
from planner.solve.program import add_term
from planner.solve.seats import at, nodes_of, used_of

NAME = "occupancy"


def apply(model: Model) -> None:
    """Write the supply rows of every pool."""
    for pool in model.pools:
        _split(model, pool)
        _located_rows(model, pool)
        for index, cell in enumerate(pool.layout.cells):
            if pool.layout.nested:
                _nested_rows(model, pool, index, cell)
            else:
                _pattern_rows(model, pool, index, cell)


def _split(model: Model, pool: PoolVariables) -> None:
    """Say how many groups of each kind every cell takes."""
    layout = pool.layout
    asked: dict[Item, dict[int, int]] = {item: {} for item in layout.items}
    for shape in model.instance.fresh_of_pool(layout.pool).tolist():
        add_term(asked[item_of(model.instance, shape)], model.count[shape], int(model.instance.shapes.groups[shape]))
    if len(layout.cells) == 1:
        pool.demand.update({(0, item): terms for item, terms in asked.items()})
        return
    for item, terms in asked.items():
        row = {variable: -groups for variable, groups in terms.items()}
        for index, cell in enumerate(layout.cells):
            most = sum(len(group.members) * (group.free // item.size) for group in cell.classes)
            if most:
                variable = model.program.add_variable(0, most)
                pool.split[index, item] = variable
                pool.demand[index, item] = {variable: 1}
                row[variable] = 1
        model.program.add_row(NAME, row, lower=0)


def _located_rows(model: Model, pool: PoolVariables) -> None:
    """Leave room for the replicas that are counted by failure domain: in every cell for their groups, in every block for their GPUs."""
    inside: dict[tuple[int, Item], dict[int, int]] = {}
    blocks: dict[tuple[int, int], dict[int, int]] = {}
    for shape in model.instance.fresh_of_pool(pool.layout.pool).tolist():
        for index, terms in pool.located.groups(shape).items():
            for variable, groups in terms.items():
                add_term(inside.setdefault((index, item_of(model.instance, shape)), {}), variable, -groups)
        for slot in pool.located.slots.get(shape, []):
            for key, variable in slot.gpus.items():
                add_term(blocks.setdefault(key, {}), variable, 1)
    for cell_item, row in inside.items():
        if pool.split:
            model.program.add_row(NAME, {pool.split[cell_item]: 1, **row}, lower=0)
    for (index, number), row in blocks.items():
        _add_seats(model, pool, index, number, row)
        model.program.add_row(NAME, row, upper=pool.layout.cells[index].blocks[number].free)


def _add_seats(model: Model, pool: PoolVariables, index: int, number: int, row: dict[int, int]) -> None:
    """Count the GPUs that replicas that stay use of one block of a scope."""
    cell = pool.layout.cells[index]
    scope, nodes = int(cell.members[0]), cell.blocks[number].nodes
    for seat_number, variable in pool.seats.items():
        used = used_of(nodes_of(pool.layout.scopes, scope), at(model.instance.seats[seat_number], scope))
        add_term(row, variable, sum(used[node] for node in nodes))


def _nested_rows(model: Model, pool: PoolVariables, index: int, cell: Cell) -> None:
    for item in pool.layout.items:
        row: dict[int, int] = {}
        room = 0
        for other in pool.layout.items:
            if other.size >= item.size:
                for variable, groups in pool.demand.get((index, other), {}).items():
                    add_term(row, variable, groups * (other.size // item.size))
        for position, group in enumerate(cell.classes):
            if not pool.gated(group):
                room += len(group.members) * (group.free // item.size)
                continue
            for number, opening in enumerate(group.openings):
                add_term(row, pool.opened[Opened(index, position, number)], -(opening.free // item.size))
        model.program.add_row(NAME, row, upper=room)


def _pattern_rows(model: Model, pool: PoolVariables, index: int, cell: Cell) -> None:
    items = pool.layout.items
    supply: dict[Item, dict[int, int]] = {item: {} for item in items}
    for position, group in enumerate(cell.classes):
        for number, opening in enumerate(group.openings):
            patterns = maximal_patterns(opening.free, opening.parts(group), items)
            if patterns is None:
                _held_rows(model, pool, index, position, supply)
                break
            row: dict[int, int] = {}
            for pattern in patterns:
                if any(pattern):
                    variable = model.program.add_variable(0, len(group.members))
                    pool.filled[Filled(index, position, number, pattern)] = variable
                    row[variable] = 1
                    for item, count in zip(items, pattern, strict=True):
                        add_term(supply[item], variable, count)
            if pool.gated(group):
                row[pool.opened[Opened(index, position, number)]] = -1
                model.program.add_row(NAME, row, upper=0)
            else:
                model.program.add_row(NAME, row, upper=len(group.members))
    for item in items:
        row = dict(supply[item])
        for variable, groups in pool.demand.get((index, item), {}).items():
            add_term(row, variable, -groups)
        model.program.add_row(NAME, row, lower=0)


def _held_rows(model: Model, pool: PoolVariables, index: int, position: int, supply: dict[Item, dict[int, int]]) -> None:
    """Count groups scope by scope, where a class has too many patterns: sum_i k_i x[d,i] <= f_d in every scope d."""
    program = model.program
    group = pool.layout.cells[index].classes[position]
    ways: list[dict[int, int]] = [{} for _ in group.openings]
    for scope in group.members:
        room: dict[int, int] = {}
        if pool.gated(group):
            once = {}
            for number, opening in enumerate(group.openings):
                chosen = program.add_variable(0, 1)
                once[chosen] = 1
                room[chosen] = -opening.free
                ways[number][chosen] = 1
            program.add_row(NAME, once, upper=1)
        for item in pool.layout.items:
            held = program.add_variable(0, group.free // item.size)
            pool.held[Held(index, scope, item)] = held
            add_term(supply[item], held, 1)
            room[held] = item.size
        program.add_row(NAME, room, upper=0 if pool.gated(group) else group.free)
    for number, terms in enumerate(ways):
        if terms:
            terms[pool.opened[Opened(index, position, number)]] = -1
            program.add_row(NAME, terms, lower=0, upper=0)

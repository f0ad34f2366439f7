"""All groups of a replica lie under the leaf or spine that its times were computed for.

Where kinds of pinned replicas nest (`layout.pins_nest`), one row per kind over the whole pool is exact::

    sum_{i before or equal j} (units of j that i removes) n_i <= sum_c floor(S[c,k_j] / g_j)

Otherwise replicas are counted per container and the split of all groups over cells leaves them their room::

    sum_c R[s,c] = n_s                                                       every pinned shape s
    sum_{leaf in c} y[k,leaf] >= sum_s g_s sum_{c' in c} R[s,c']             every leaf, spine and fabric c, every size k

(Replicas that `locate` counts by failure domain are demands on single cells inside c and join the right-hand side.)

Totals over all leaves are not exact by themselves: two leaves with one empty scope of 8 each and a group of 4 pinned into each satisfy
every total for one more group of 8, which fits nowhere.

========== ========== =====================================================================
symbol     unit       meaning
========== ========== =====================================================================
n_s        replicas   replicas of shape s
R[s,c]     replicas   replicas of shape s inside container c (a leaf, spine or fabric)
y[k,leaf]  groups     groups of size k that the leaf takes, pinned or not
g_s        groups     groups of one replica of shape s
k_s        GPUs       size of one group
S[c,k]     groups     groups of size k that container c holds
========== ========== =====================================================================

Source: derived here from the nested rows of `occupancy`; laminar (nested) demands make the split by size alone sufficient.
"""

from __future__ import annotations

import numpy as np

from planner.solve.instance import Container
from planner.solve.layout import Item, Pin, container_ids, item_of, kind_of, pin_of, pin_order, pin_slots, units_taken
from planner.solve.model import Model, PoolVariables
from planner.solve.program import add_term

NAME = "locality"


def apply(model: Model) -> None:
    """Write the rows that keep replicas together, for every pool that has pinned shapes."""
    for pool in model.pools:
        if pool.layout.pinned_by_rows:
            _rows_over_the_pool(model, pool)
        elif pool.layout.pins:
            _rows_per_cell(model, pool)


def _rows_over_the_pool(model: Model, pool: PoolVariables) -> None:
    layout = pool.layout
    of_kind: dict[Pin, list[int]] = {}
    for shape in model.instance.fresh_of_pool(layout.pool).tolist():
        of_kind.setdefault(kind_of(model.instance, shape), []).append(shape)
    kinds = pin_order(tuple(of_kind))
    for position, later in enumerate(kinds):
        if later.groups == 1:
            continue
        row: dict[int, int] = {}
        for earlier in kinds[: position + 1]:
            units = units_taken(earlier, later) or 0
            for shape in of_kind[earlier]:
                copies = int(model.instance.shapes.groups[shape]) if earlier.groups == 1 else 1
                add_term(row, model.count[shape], units * copies)
        model.program.add_row(NAME, row, upper=pin_slots(layout.scopes, later))


def _rows_per_cell(model: Model, pool: PoolVariables) -> None:
    layout = pool.layout
    columns = model.instance.shapes
    inside: dict[tuple[Container, int, Item], dict[int, int]] = {}
    for shape in model.instance.fresh_of_pool(layout.pool).tolist():
        pin = pin_of(model.instance, shape)
        if pin is None or shape in pool.located:
            continue
        ids = container_ids(layout.scopes, pin.container)
        row = {model.count[shape]: -1}
        for container in np.unique(ids).tolist():
            held = int((layout.scopes.free[ids == container] // pin.size).sum())
            most = min(held // pin.groups, model.program.upper[model.count[shape]])
            if most:
                variable = model.program.add_variable(0, most)
                pool.pinned[shape, container] = variable
                row[variable] = 1
                key = (pin.container, container, item_of(model.instance, shape))
                add_term(inside.setdefault(key, {}), variable, int(columns.groups[shape]))
        model.program.add_row(NAME, row, lower=0, upper=0)
    located = _located_groups(model, pool)
    for container in (Container.LEAF, Container.SPINE, Container.FABRIC):
        for number in sorted({cell.within[container] for cell in layout.cells if container in cell.within}):
            cells = [(index, cell) for index, cell in enumerate(layout.cells) if cell.within[container] == number]
            nested = {(tighter, cell.within[tighter]) for _, cell in cells for tighter in cell.within if tighter >= container}
            if not any((container, number, item) in inside for item in layout.items):
                continue
            for item in layout.items:
                row = {}
                for tighter, part in sorted(nested):
                    for variable, groups in inside.get((tighter, part, item), {}).items():
                        add_term(row, variable, -groups)
                for index, _ in cells:
                    if (index, item) in pool.split:
                        add_term(row, pool.split[index, item], 1)
                    for variable, groups in located.get((index, item), {}).items():
                        add_term(row, variable, -groups)
                if any(coefficient < 0 for coefficient in row.values()):
                    model.program.add_row(NAME, row, lower=0)


def _located_groups(model: Model, pool: PoolVariables) -> dict[tuple[int, Item], dict[int, int]]:
    """Groups of every size that replicas counted by failure domain have in every cell, as linear expressions."""
    found: dict[tuple[int, Item], dict[int, int]] = {}
    for shape in model.instance.fresh_of_pool(pool.layout.pool).tolist():
        for index, terms in pool.located.groups(shape).items():
            for variable, groups in terms.items():
                add_term(found.setdefault((index, item_of(model.instance, shape)), {}), variable, groups)
    return found

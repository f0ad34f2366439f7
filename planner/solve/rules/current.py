"""A replica of the current plan that stays keeps exactly its GPUs and its shape; every other replica is a move and costs one.

::

    minimise  cost + p sum_{s new} n_s                               the objective `cost` where a current plan is given

    n_s = sum_{j of s} k_j,   0 <= k_j <= K_j                        every shape s of replicas that may stay
    sum_o r[o,b] u[d,o] + sum_j a[j,b] k_j <= f[d,b],   sum_o u[d,o] <= 1        every part b of every scope d where replicas may stay

The room that others find in such a scope is that of the one way u[d,o] in which it is used, so the rows of `occupancy` stay exact: what is
left of a scope is rounded down to groups after the replicas that stay, not before. Where nodes are billed whole::

    sum_o r[o,b] u[d,o] + sum_j a[j,b] k_j <= sum_{node of d} f[node] open[node],   k_j <= K_j open[node of j],   cost += P open[node]

========== ========== =====================================================================
symbol     unit       meaning
========== ========== =====================================================================
n_s        replicas   replicas of shape s
p          1e-6 $/h   price of a move, spread over the hours it is stated over
k_j        replicas   replicas that stay in seat j: alike in shape and in what they use of every scope
K_j        replicas   replicas that run in seat j
a[j,b]     GPUs       GPUs of part b (a pair or mesh, else the whole scope) that one of them uses
u[d,o]     0 or 1     scope d is used in way o, which leaves others r[o,b] GPUs of part b
f[d,b]     GPUs       usable GPUs of part b
open       0 or 1     whether a node is paid for, P is its price
========== ========== =====================================================================

Source: the problem's own `current`. Keeping part of a running placement while the rest is packed anew is the migration cost of
Beloglazov and Buyya, "Optimal online deterministic algorithms and adaptive heuristics for energy and performance efficient dynamic
consolidation of virtual machines in Cloud data centers" (2012); the rows are derived here.
"""

from __future__ import annotations

from planner.solve.instance import Seat
from planner.solve.model import Model, Opened, PoolVariables
from planner.solve.program import add_term
from planner.solve.seats import at, bins_of, nodes_of, scopes_used, touched, used_of

NAME = "current"

Taken = dict[int, list[tuple[int, Seat]]]
"""Variables and seats by scope."""


def apply(model: Model) -> None:
    """Tie the replicas that stay to their GPUs, in every pool where some run."""
    for pool in model.pools:
        taken: Taken = {}
        whole: dict[int, dict[int, int]] = {}
        for number, shape, seat in model.instance.seats_of_pool(pool.layout.pool):
            variable = pool.seats[number]
            whole.setdefault(shape, {model.count[shape]: -1})[variable] = 1
            for scope in scopes_used(seat):
                taken.setdefault(scope, []).append((variable, seat))
            for kind in model.instance.rules_of(int(model.instance.shapes.deployment[shape])).kinds:
                labels = pool.located.touching.setdefault((shape, kind), {})
                for label in touched(pool.layout.scopes, seat, kind):
                    add_term(labels.setdefault(label, {}), variable, 1)
        for row in whole.values():
            model.program.add_row(NAME, row, lower=0, upper=0)
        _rooms(model, pool, taken)


def _rooms(model: Model, pool: PoolVariables, taken: Taken) -> None:
    """Leave others what the replicas that stay leave of every scope."""
    program, scopes = model.program, pool.layout.scopes
    for index, cell in enumerate(pool.layout.cells):
        for position, group in enumerate(cell.classes):
            if not group.seated:
                continue
            scope = group.members[0]
            ways = {pool.opened[Opened(index, position, number)]: way for number, way in enumerate(group.openings)}
            bins = bins_of(scopes, scope)
            nodes = _open_nodes(model, pool, scope, taken[scope]) if scopes.node_price is not None else None
            for part, free in enumerate(bins):
                row = {variable: way.bins[part] for variable, way in ways.items() if way.bins[part]}
                for variable, seat in taken[scope]:
                    add_term(row, variable, used_of(bins, at(seat, scope))[part])
                if nodes is None:
                    program.add_row(NAME, row, upper=free)
                    continue
                # A scope with parts is one node, so that its part is there when the node is.
                for variable, held in nodes.items():
                    add_term(row, variable, -(free if scopes.parts else held))
                program.add_row(NAME, row, upper=0)
            if nodes is not None:
                _counted_on_open_nodes(model, pool, index, nodes, taken[scope])
            if model.keep_whole and group.whole:
                in_use = pool.in_use[scope] = program.add_variable(0, 1)
                for variable in (*ways, *(variable for variable, _ in taken[scope])):
                    program.add_row(NAME, {variable: 1, in_use: -program.upper[variable]}, upper=0)


def _counted_on_open_nodes(model: Model, pool: PoolVariables, index: int, nodes: dict[int, int], taken: list[tuple[int, Seat]]) -> None:
    """Leave the replicas that are counted by failure domain only the nodes that are paid for."""
    cell = pool.layout.cells[index]
    scope, opened = int(cell.members[0]), list(nodes.items())
    for number, block in enumerate(cell.blocks if len(cell.blocks) > 1 else ()):
        row = {opened[node][0]: -opened[node][1] for node in block.nodes}
        for slots in pool.located.slots.values():
            for slot in slots:
                if (index, number) in slot.gpus:
                    row[slot.gpus[index, number]] = 1
        for variable, seat in taken:
            used = used_of(nodes_of(pool.layout.scopes, scope), at(seat, scope))
            add_term(row, variable, sum(used[node] for node in block.nodes))
        model.program.add_row(NAME, row, upper=0)


def _open_nodes(model: Model, pool: PoolVariables, scope: int, taken: list[tuple[int, Seat]]) -> dict[int, int]:
    """Add what says whether each node of a scope is paid for, with its free GPUs; a replica that stays opens every node it runs on."""
    program, scopes = model.program, pool.layout.scopes
    nodes = nodes_of(scopes, scope)
    found: dict[int, int] = {}
    for node, free in enumerate(nodes):
        opened = pool.node_open[scope, node] = program.add_variable(0, 1)
        found[opened] = free
        add_term(model.cost, opened, scopes.node_price or 0)
        for variable, seat in taken:
            if used_of(nodes, at(seat, scope))[node]:
                program.add_row(NAME, {variable: 1, opened: -program.upper[variable]}, upper=0)
    return found

"""A pool billed by whole node costs every node it opens, however few of its GPUs are used.

::

    cost = sum_{s billed by GPU} c_s n_s + sum_{g billed by node} P_g sum_c sum_o v_o u[c,o]
    sum_o u[c,o] <= N_c                                              every class c of equal scopes
    the room of the opened nodes alone, sum_o floor(f_o / k) u[c,o], stands on the right of the nested rows

========== ========== =====================================================================
symbol     unit       meaning
========== ========== =====================================================================
c_s        1e-6 $/h   price of one replica of shape s, billed by GPU
P_g        1e-6 $/h   price of one node of pool g
u[c,o]     scopes     scopes of class c of which v_o nodes are opened
v_o        nodes      nodes opened in one scope, fullest first (a scope of one node has one way)
f_o        GPUs       usable GPUs of these nodes
N_c        scopes     scopes of class c
========== ========== =====================================================================

Source: fixed-charge capacity, as in Nemhauser and Wolsey, "Integer and Combinatorial Optimization" (1988), aggregated over equal scopes.
"""

from __future__ import annotations

from planner.solve.model import Model
from planner.solve.program import add_term


def apply(model: Model) -> None:
    """Replace the price by GPU with the price of opened nodes in the pools billed so."""
    for pool in model.pools:
        price = pool.layout.scopes.node_price
        if price is None:
            continue
        for shape in model.instance.of_pool(pool.layout.pool).tolist():
            model.cost.pop(model.count[shape], None)
        for key, variable in pool.opened.items():
            opening = pool.layout.cells[key.cell].classes[key.group].openings[key.opening]
            add_term(model.cost, variable, price * opening.nodes)

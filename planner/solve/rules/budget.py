"""The plan costs no more than the budget and uses no more GPUs of a type than allowed.

::

    cost <= B
    sum_{s on type g} k_s g_s n_s <= G_g                  every GPU type g with a limit

========== ========== =====================================================================
symbol     unit       meaning
========== ========== =====================================================================
cost       1e-6 $/h   money as `billing` states it, prices rounded up
B          1e-6 $/h   budget, rounded down
n_s        replicas   replicas of shape s
k_s g_s    GPUs       GPUs of one replica: size times number of its groups
G_g        GPUs       most GPUs of type g, over all pools of that type
========== ========== =====================================================================

Source: the problem's own `budget`.
"""

from __future__ import annotations

from planner.solve.model import Model

NAME = "budget"


def apply(model: Model) -> None:
    """Write the row of the money, and one row for every limited GPU type."""
    budget = model.instance.budget
    if budget.per_hour is not None:
        model.program.add_row(NAME, model.cost, upper=budget.per_hour)
    gpus = model.instance.shapes.gpus.tolist()
    for limited in budget.gpus:
        row = {model.count[shape]: gpus[shape] for pool in limited.pools for shape in model.instance.of_pool(pool).tolist()}
        model.program.add_row(NAME, row, upper=limited.limit)

"""The replicas of a deployment serve at least its load.

::

    sum_{s of m} q_s n_s >= L_m                          every deployment m

When the load served is to be greatest, the stated loads say in which proportion, and the smallest share counts::

    sum_{s of m} (q_s / L_m) n_s >= lambda,   sum_{s of m} n_s >= 1

========== ================ ===============================================================
symbol     unit             meaning
========== ================ ===============================================================
n_s        replicas         replicas of shape s
q_s        sequences or     what one replica holds within memory and targets (concurrency),
           tokens/s         or produces (rate); rounded down to 1e-6
L_m        as q_s           load of deployment m, rounded up to 1e-6
lambda     1e-6             share of every load that is served
========== ================ ===============================================================

Source: the covering row of the multidimensional knapsack, Kellerer, Pferschy and Pisinger, "Knapsack Problems" (2004).
"""

from __future__ import annotations

from planner.solve.model import Model

NAME = "load"


def apply(model: Model) -> None:
    """Write one covering row for every deployment whose load is not in buckets."""
    columns = model.instance.shapes
    for deployment in range(model.instance.deployments):
        if model.instance.slicing_of(deployment) is not None:
            continue
        shapes = model.instance.serving(deployment).tolist()
        if model.share is None:
            row = {model.count[shape]: int(columns.capacity[shape]) for shape in shapes}
            if deployment in model.unserved:
                row[model.unserved[deployment]] = 1
            model.program.add_row(NAME, row, lower=int(model.instance.loads[deployment]))
            continue
        row = {model.count[shape]: int(columns.share[shape]) for shape in shapes}
        row[model.share] = -1
        model.program.add_row(NAME, row, lower=0)
        model.program.add_row(NAME, {model.count[shape]: 1 for shape in shapes}, lower=1)

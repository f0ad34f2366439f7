"""No failure domain holds more replicas of a deployment than allowed.

::

    sum_{s of m} touch[s,d] <= most_m                    every deployment m that spreads, every domain d of its kind

========== ========== =====================================================================
symbol     unit       meaning
========== ========== =====================================================================
touch[s,d] replicas   replicas of shape s with at least one GPU in domain d, counted exactly
most_m     replicas   most replicas of deployment m in one domain
========== ========== =====================================================================

A replica counts in every domain it touches, however few of its GPUs lie there. Pods are kept apart in the same way by `podAntiAffinity` over
a `topologyKey`, Kubernetes documentation, "Assigning Pods to Nodes".

Source: the problem's own `spread`.
"""

from __future__ import annotations

from planner.solve.model import Model

NAME = "spread"


def apply(model: Model) -> None:
    """Write one row for every deployment that spreads and every domain it can reach."""
    for deployment in range(model.instance.deployments):
        spread = model.instance.rules_of(deployment).spread
        if spread is None:
            continue
        for _, replicas in sorted(model.touching(deployment, spread.kind).items()):
            model.program.add_row(NAME, replicas, upper=spread.most)

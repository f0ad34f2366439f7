"""A deployment uses only the GPUs it is pinned to, and none that it is forbidden.

::

    use[s,b] = 0                                         every shape s of m, every block b of GPUs that m may not use

========== ========== =====================================================================
symbol     unit       meaning
========== ========== =====================================================================
use[s,b]   GPUs       GPUs of block b that replicas of shape s use; a block is part of one cell, all of it allowed to m or none
========== ========== =====================================================================

The blocks come with the cells that `locate` counts replicas in, so that no variable is made where nothing may stand. Replicas can still
use the smaller room next to other deployments exactly: the rows of `occupancy` hold in every cell and block.

Source: the problem's own `pin` and `forbid`; node affinity in Kubernetes documentation, "Assigning Pods to Nodes".
"""

from __future__ import annotations

from planner.solve.model import Model


def apply(model: Model) -> None:
    """Say which kind of domain tells the GPUs of a deployment from those it may not use."""
    for deployment in range(model.instance.deployments):
        only = model.instance.rules_of(deployment).only
        if only:
            model.only[deployment] = only

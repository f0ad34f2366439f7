"""GPUs are kept free in which any lost replicas, up to so many, start again at once in the shape that they had.

::

    r_s >= min(n_m, n_s)                                 every shape s of a deployment m with spares

written as::

    n_s <= r_s + U_s t_s,   r_s >= n_m t_s

The r_s sets of GPUs are groups like those of replicas: they stand in the rows of `occupancy`, `locality`, `pin`, `billing` and `budget`, and they are paid
for. They serve nothing, and are no replicas to `replicas`, `spread` and `resilience`.

========== ========== =====================================================================
symbol     unit       meaning
========== ========== =====================================================================
n_s        replicas   replicas of shape s
r_s        sets       sets of free GPUs that hold one replica of shape s each
n_m        replicas   replicas of one shape that may be lost at once
t_s        0 or 1     whether more replicas of the shape run than spares are kept for it
U_s        replicas   upper bound of n_s
========== ========== =====================================================================

Source: N+1 redundancy with cold standby; capacity kept for failover as in Kubernetes cluster overprovisioning (its documentation, "Overprovision Node
Capacity For A Cluster").
"""

from __future__ import annotations

from planner.solve.model import Model

NAME = "spares"


def apply(model: Model) -> None:
    """Write the rows of every shape that GPUs can be kept free for."""
    program, instance = model.program, model.instance
    if instance.shapes.spare_of is None:
        return
    by_source = {source: shape for shape, source in enumerate(instance.source.tolist())}
    # A shape that a threshold has taken out needs no spares.
    kept_for = {
        shape: by_source.get(int(instance.shapes.spare_of[shape])) for shape in range(len(instance.shapes)) if instance.spare[shape]
    }
    spares = {served: shape for shape, served in kept_for.items() if served is not None}
    for shape in range(len(instance.shapes)):
        wanted = instance.rules_of(int(instance.shapes.deployment[shape])).spares
        most = program.upper[model.count[shape]]
        if not wanted or instance.spare[shape] or not most:
            continue
        kept = {model.count[spares[shape]]: 1} if shape in spares else {}
        more = program.add_variable(0, 1)
        program.add_row(NAME, {model.count[shape]: 1, more: -most, **dict.fromkeys(kept, -1)}, upper=0)
        program.add_row(NAME, {**kept, more: -wanted}, lower=0)

"""Part of a load may go unserved where its deployment allows it; the most important deployments go short last.

::

    sum_{s of m} q_s n_s + u_m >= L_m,   0 <= u_m <= floor(part_m L_m)          every deployment m that may go unserved

and, before the objective asked for, level after level of importance from the highest down::

    minimise sum_{m of the level} w_m u_m                w_m = floor(2^40 / L_m), at least 1

each with the values of the levels above it fixed: a lexicographic order, never one weighted sum over levels. Inside a level the weights
make equal shares of the loads weigh alike.

========== ================ ===============================================================
symbol     unit             meaning
========== ================ ===============================================================
n_s        replicas         replicas of shape s
q_s        as the load      what one replica serves
L_m        as the load      load of deployment m
u_m        as the load      load that goes unserved
part_m     share            most of the load that may go unserved
========== ================ ===============================================================

Source: lexicographic (preemptive) goal programming, as in Ignizio, "Goal Programming and Extensions" (1976).
"""

from __future__ import annotations

from planner.solve.model import Model
from planner.solve.scaling import UNSERVED_UNITS


def apply(model: Model) -> None:
    """Add the unserved load of every deployment that may have some; `load` writes it into the covering row."""
    if model.share is not None:
        return
    for deployment in range(model.instance.deployments):
        most = model.instance.may_go_unserved(deployment)
        if most:
            model.unserved[deployment] = model.program.add_variable(0, most)


def levels(model: Model) -> list[dict[int, int]]:
    """Unserved load of every level of importance as linear expressions, the most important first."""
    found: dict[int, dict[int, int]] = {}
    for deployment, variable in model.unserved.items():
        weight = max(1, UNSERVED_UNITS // max(1, int(model.instance.loads[deployment])))
        found.setdefault(model.instance.rules_of(deployment).priority, {})[variable] = weight
    return [found[priority] for priority in sorted(found, reverse=True)]

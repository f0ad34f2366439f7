"""After the loss of any one failure domain the replicas that have no GPU in it still serve the stated share of the load.

::

    sum_{s of m} q_s touch[s,d] <= loss_m                every deployment m with the rule, every domain d of its kind
    sum_{s of m} q_s n_s - loss_m >= R_m,                R_m = ceil(keep_m L_m)

When any one GPU may fail, a replica is what is lost, whichever GPU it is::

    q_s b_s <= loss_m,   n_s <= U_s b_s                  every shape s of m

Valid besides, as each replica touches at least one of the D domains in reach, so that the fullest carries at least T / D of the total T::

    sum_{s of m} q_s n_s >= ceil(R_m D / (D - 1))        D >= 2; with D = 1 nothing survives

Where load may go unserved, R_m = keep_m (L_m - u_m), written without rounding. When the load served is to be greatest, shares of the load stand for q_s and keep_m lambda for R_m.

========== ================ ===============================================================
symbol     unit             meaning
========== ================ ===============================================================
n_s        replicas         replicas of shape s
touch[s,d] replicas         replicas of shape s with at least one GPU in domain d, counted exactly: losing one GPU stops the whole replica
q_s        as the load      what one replica serves
loss_m     as the load      most that the loss of one domain takes
keep_m     share            share of the load that must be left
b_s        0 or 1           whether shape s is used; U_s is the upper bound of n_s
lambda     1e-6             share of every load that is served
========== ================ ===============================================================

Source: N+1 redundancy. That one GPU takes its replica with it is documented for data-parallel and expert-parallel groups in
vllm-project/vllm issue 30112.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.solve.counts import rest_of
from planner.solve.instance import Resilience
from planner.solve.model import Model
from planner.solve.program import Terms

NAME = "resilience"


def apply(model: Model) -> None:
    """Write the rows of every deployment that must survive a loss."""
    for deployment in range(model.instance.deployments):
        resilience = model.instance.rules_of(deployment).resilience
        if resilience is not None:
            _survive(model, deployment, resilience)


def _survive(model: Model, deployment: int, resilience: Resilience) -> None:
    program, instance = model.program, model.instance
    shapes = instance.serving(deployment).tolist()
    weights = (instance.shapes.capacity if model.share is None else instance.shapes.share).tolist()
    served = {model.count[shape]: weights[shape] for shape in shapes}
    losses = list(_losses(model, deployment, resilience.kind, weights))
    most = max((sum(weight * program.upper[variable] for variable, weight in terms.items()) for terms in losses), default=0)
    loss = program.add_variable(0, most)
    for terms in losses:
        program.add_row(NAME, {**terms, loss: -1}, upper=0)
    numerator, denominator = resilience.keep.numerator, resilience.keep.denominator
    if model.share is not None:
        scaled = {variable: weight * denominator for variable, weight in served.items()}
        program.add_row(NAME, {**scaled, loss: -denominator, model.share: -numerator}, lower=0)
        return
    if deployment in model.unserved:
        scaled = {variable: weight * denominator for variable, weight in served.items()}
        row = {**scaled, loss: -denominator, model.unserved[deployment]: numerator}
        program.add_row(NAME, row, lower=numerator * int(instance.loads[deployment]))
        return
    rest = rest_of(int(instance.loads[deployment]), numerator, denominator)
    program.add_row(NAME, {**served, loss: -1}, lower=rest)
    if resilience.kind != "gpu" and len(losses) > 1:
        program.add_row(NAME, served, lower=-(-rest * len(losses) // (len(losses) - 1)))


def _losses(model: Model, deployment: int, kind: str, weights: list[int]) -> Iterable[Terms]:
    """What the loss of each domain takes, as linear expressions."""
    if kind != "gpu":
        yield from (terms for _, terms in sorted(model.touching(deployment, kind, weights).items()))
        return
    for shape in model.instance.serving(deployment).tolist():
        most = model.program.upper[model.count[shape]]
        if most:
            used = model.program.add_variable(0, 1)
            model.program.add_row(NAME, {model.count[shape]: 1, used: -most}, upper=0)
            yield {used: weights[shape]}

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

On large fleets places come after counts (`planner/solve/spreading/`). Then only limits on numbers are written that every plan keeps, for every pool p and size k, and where p is billed by node::

    sum_{s of m on p, k_s >= k} t_s n_s <= sum_d min(most_m, slots[d,k])        and over all pools, with their least sizes
    sum_{s of m on p} t_s n_s <= most_m sum (nodes opened of p)
    sum (replicas of m that stay and touch d) <= most_m                         every domain d

========== ========== =====================================================================
k_s        GPUs       size of one group of shape s
t_s        domains    fewest domains that a replica of s touches
slots[d,k] groups     groups of size k that the free GPUs of domain d hold
========== ========== =====================================================================
"""

from __future__ import annotations

from planner.solve.instance import Spread
from planner.solve.model import Model
from planner.solve.seats import touched as touched_by
from planner.solve.spreading.numbers import number_lines, touched

NAME = "spread"


def apply(model: Model) -> None:
    """Write one row for every deployment that spreads and every domain it can reach; of those placed after only what bounds their number."""
    for deployment in range(model.instance.deployments):
        rules = model.instance.rules_of(deployment)
        if rules.spread is not None:
            for _, replicas in sorted(model.touching(deployment, rules.spread.kind).items()):
                model.program.add_row(NAME, replicas, upper=rules.spread.most)
        if rules.placed_apart is not None:
            _staying_apart(model, deployment, rules.placed_apart)
            _bound_numbers(model, deployment, rules.placed_apart)


def _staying_apart(model: Model, deployment: int, spread: Spread) -> None:
    """Write one row for every domain in which replicas run that may stay."""
    instance = model.instance
    rows: dict[int, dict[int, int]] = {}
    for pool in model.pools:
        for number, shape, seat in instance.seats_of_pool(pool.layout.pool):
            if instance.shapes.deployment[shape] == deployment and number in pool.seats:
                for label in touched_by(pool.layout.scopes, seat, spread.kind):
                    rows.setdefault(label, {})[pool.seats[number]] = 1
    for _, row in sorted(rows.items()):
        model.program.add_row(NAME, row, upper=spread.most)


def _bound_numbers(model: Model, deployment: int, spread: Spread) -> None:
    upper = [model.program.upper[variable] for variable in model.count]
    for terms, limit in number_lines(model.instance, deployment, spread, upper):
        model.program.add_row(NAME, {model.count[shape]: times for shape, times in terms.items()}, upper=limit)
    for pool in model.pools:
        scopes = pool.layout.scopes
        mine = [shape for shape in model.instance.serving(deployment).tolist() if model.instance.shapes.pool[shape] == pool.layout.pool]
        if scopes.node_price is None or not mine or not pool.opened or pool.seats:
            continue
        row = {model.count[shape]: times for shape, times in zip(mine, touched(model.instance, mine, scopes, spread.kind), strict=True)}
        for key, variable in pool.opened.items():
            group = pool.layout.cells[key.cell].classes[key.group]
            row[variable] = -spread.most * group.openings[key.opening].nodes
        model.program.add_row(NAME, row, upper=0)

"""Greedy choice of replicas and their places at once: any plan, where nothing better was found."""

from __future__ import annotations

import numpy as np

from planner.solve.instance import Instance, IntArray
from planner.solve.spreading.places import Places, Sites, all_free

STARTS = 40
"""Orders of deployments that are tried."""

LARGER = (0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Least replicas that a deployment takes, one after another where it finds too little: multiples of its load spread evenly over all it may have."""


def chosen_greedily(instance: Instance) -> tuple[list[int], Places] | None:
    """Counts by shape and their places that serve every load; None where no order of deployments gives any.

    Every deployment takes its cheapest shape for the load while it has places, then the next, and of what the last replica may be the cheapest that serves the rest. One that found too
    little goes first the next time, and takes larger replicas then where it spreads.
    """
    order, larger = _by_room(instance), [0] * instance.deployments
    each = [_even_part(instance, number) for number in range(instance.deployments)]
    for _ in range(STARTS):
        sites, places = Sites(instance, all_free(instance)), Places()
        counts = [0] * len(instance.shapes)
        least = [int(LARGER[step] * part) for step, part in zip(larger, each, strict=True)]
        failed = next((number for number in order if not _serve(instance, number, sites, places, counts, least[number])), None)
        if failed is None:
            return counts, places
        order = [failed, *(number for number in order if number != failed)]
        larger[failed] = min(larger[failed] + 1, len(LARGER) - 1) if each[failed] else 0
    return None


def _even_part(instance: Instance, number: int) -> float:
    """Load of a deployment by replica, where every domain holds as many as it may; 0 where it does not spread."""
    spread = instance.rules_of(number).apart
    if spread is None:
        return 0.0
    pools = np.unique(instance.shapes.pool[instance.serving(number)]).tolist()
    domains = {label for pool in pools for own in instance.pools[pool].domains[spread.kind] for label in own}
    return int(instance.loads[number]) / max(1, spread.most * len(domains))


def _by_room(instance: Instance) -> list[int]:
    """Deployments by the size of their smallest group, largest first, then by their part of the room."""
    columns = instance.shapes

    def key(number: int) -> tuple[int, int]:
        own = instance.serving(number)
        return (-int(columns.size[own].min(initial=1 << 30)), number)

    return sorted(range(instance.deployments), key=key)


def _serve(instance: Instance, number: int, sites: Sites, places: Places, counts: list[int], least: int) -> bool:
    """Place replicas of one deployment that serve at `least` so much each until its load is served and its least number of replicas runs."""
    columns, limits = instance.shapes, instance.limits[number]
    own = instance.serving(number)
    # Nothing stays here: all is placed anew.
    own = own[~instance.kept[own]]
    own = own[columns.capacity[own] >= min(least, int(columns.capacity[own].max(initial=0)))]
    weight = columns.price if instance.objective == "cost" else columns.gpus
    each = weight[own] / np.maximum(columns.capacity[own], 1)
    ranked: IntArray = own[np.lexsort((own, each))]
    by_price: IntArray = own[np.lexsort((own, weight[own]))]
    rest, running = int(instance.loads[number]) - instance.may_go_unserved(number), 0
    most = 1 << 40 if limits.maximum is None else limits.maximum
    forms = sorted(set(columns.form[own].tolist())) if limits.one_shape else [-1]
    if len(forms) > 1:
        # One shape for all: that of the cheapest.
        ranked = ranked[columns.form[ranked] == columns.form[ranked[0]]]
        by_price = by_price[columns.form[by_price] == columns.form[ranked[0]]]
    for shape in ranked.tolist():
        capacity = int(columns.capacity[shape])
        wanted = min(rest // capacity if capacity else 0, most - running)
        placed = sites.place(shape, wanted, places) if wanted > 0 else 0
        counts[shape] += placed
        running, rest = running + placed, rest - placed * capacity
        if placed == wanted:
            break
    while (rest > 0 or running < limits.minimum) and running < most:
        ready = [shape for shape in by_price.tolist() if columns.capacity[shape] >= rest] or ranked.tolist()
        taken = next((shape for shape in ready if sites.place(shape, 1, places)), None)
        if taken is None and rest > 0:
            taken = next((shape for shape in ranked.tolist() if sites.place(shape, 1, places)), None)
        if taken is None:
            return False
        counts[taken] += 1
        running, rest = running + 1, rest - int(columns.capacity[taken])
    return rest <= 0 and running >= limits.minimum

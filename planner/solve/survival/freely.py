"""Counts and places at once by CP-SAT, over all shapes and bins in place of listed choices: for few bins, where lists leave a wide gap or no plan."""

from __future__ import annotations

import numpy as np

from planner.solve import cpsat
from planner.solve.instance import IntArray
from planner.solve.program import Program
from planner.solve.survival.fitting import Sites
from planner.solve.survival.places import Places, Room

PLACES = 3_000
"""Most variables of the program."""


def place_freely(
    room: Room, least: int, most: int | None, limits: cpsat.Limits, hint: tuple[IntArray, Places] | None
) -> tuple[int, IntArray, Places] | None:
    """Cost, counts and places of a plan that costs from `least` to `most`; None where none is found, the program is too large, forms must be one, or a GPU may be lost.

    ::

        minimise  sum_s c_s y_s     subject to     nested rows of every bin,
        sum_s q_s y_s >= L,   sum_s q_s y_s - loss >= R,   sum_s q_s y_{s,d} <= loss          every deployment, every domain d
    """
    question = room.question
    instance = question.instance
    if "gpu" in question.kinds or any(limit.one_shape for limit in instance.limits):
        return None
    program = Program()
    sites = Sites(room, program)
    replicas = [sites.add(shape, limit) for shape, limit in enumerate(question.limits.tolist())]
    if len(program.lower) > PLACES:
        return None
    cost = {variable: weight for own, weight in zip(replicas, question.weights.tolist(), strict=True) for variable in own}
    for pool, bins in question.bins.items():
        sites.nested(pool, bins.slots)
    losses = []
    for deployment, limit in enumerate(instance.limits):
        mine = instance.of_deployment(deployment).tolist()
        served = {variable: room.capacity[shape] for shape in mine for variable in replicas[shape]}
        greatest = sum(serves * program.upper[variable] for variable, serves in served.items())
        losses.append(program.add_variable(0, greatest))
        program.add_row("load", served, lower=int(instance.loads[deployment]))
        program.add_row("resilience", {**served, losses[-1]: -1}, lower=question.rest[deployment])
        program.add_row("replicas", dict.fromkeys(served, 1), lower=limit.minimum, upper=limit.maximum)
    for (deployment, _), row in sites.carried().items():
        program.add_row("resilience", {**row, losses[deployment]: -1}, upper=0)
    for (deployment, _), row in sites.standing().items():
        program.add_row("spread", row, upper=room.apart[deployment][1])
    for limited in instance.budget.gpus:
        gpus = {
            v: int(instance.shapes.gpus[s]) for s, own in enumerate(replicas) if int(instance.shapes.pool[s]) in limited.pools for v in own
        }
        program.add_row("budget", gpus, upper=limited.limit)
    if instance.budget.per_hour is not None:
        money = {variable: int(instance.shapes.price[shape]) for shape, own in enumerate(replicas) for variable in own}
        program.add_row("budget", money, upper=instance.budget.per_hour)
    program.add_row("bound", cost, lower=least, upper=most)
    start = None if hint is None else {variable: hint[1].inside.get(key, 0) for key, variable in sites.of.items()}
    found = cpsat.minimise(program, cost, limits, start)
    if found.values is None or found.objective is None:
        return None
    values = found.values
    counts = np.array([sum(values[variable] for variable in own) for own in replicas], dtype=np.int64)
    return found.objective, counts, sites.read(values)

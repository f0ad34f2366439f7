"""Multi-start greedy: a plan in milliseconds, to start the solver from and to answer with when it finds none."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice, permutations
from math import factorial

import numpy as np

from planner.solve.instance import Instance, IntArray
from planner.solve.model import Model

STARTS = 50
"""Orders of the deployments that are tried, each with shapes mixed and with one shape each."""


class _Slack:
    """What is left of every row that speaks of counts alone; such rows are all of them where nested rows tell everything."""

    def __init__(self, model: Model) -> None:
        position = {variable: shape for shape, variable in enumerate(model.count)}
        rows = [
            row
            for row in model.program.rows
            if row.upper is not None
            and row.lower is None
            and all(v in position and c >= 0 for v, c in zip(row.variables, row.coefficients, strict=True))
        ]
        self.use = np.zeros((len(rows), len(model.count)), dtype=np.int64)
        for number, row in enumerate(rows):
            for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
                self.use[number, position[variable]] = coefficient
        self.start = np.array([row.upper for row in rows], dtype=np.int64)
        self.bounds = np.array([model.program.upper[variable] for variable in model.count], dtype=np.int64)
        # Rows a shape does not enter never bind it; dividing by 1 there keeps the division exact and cheap.
        self.rows_of = [np.flatnonzero(self.use[:, shape]) for shape in range(len(model.count))]

    def most(self, left: IntArray, counts: IntArray, shape: int) -> int:
        """Replicas of a shape that still fit."""
        most = int(self.bounds[shape] - counts[shape])
        rows = self.rows_of[shape]
        if len(rows) and most > 0:
            most = min(most, int((left[rows] // self.use[rows, shape]).min()))
        return max(most, 0)


def _orders(deployments: int, seed: int) -> list[tuple[int, ...]]:
    if deployments <= 4:
        return list(islice(permutations(range(deployments)), min(STARTS, factorial(deployments))))
    # Fixed by the seed: shuffling for variety, not for secrecy.
    shuffle = random.Random(seed)  # noqa: S311
    return [tuple(range(deployments)), *(tuple(shuffle.sample(range(deployments), deployments)) for _ in range(STARTS - 1))]


def _fill(
    instance: Instance, slack: _Slack, order: Sequence[int], weights: IntArray, single: bool, ranked: list[list[int]]
) -> IntArray | None:
    """Serve deployments one after another, best weight per load first; None when one is left short."""
    capacity = instance.shapes.capacity
    left = slack.start.copy()
    counts = np.zeros(len(capacity), dtype=np.int64)

    def put(shape: int, wanted: int) -> int:
        placed = min(wanted, slack.most(left, counts, shape))
        if placed:
            counts[shape] += placed
            left[:] -= slack.use[:, shape] * placed
        return placed

    for deployment in order:
        need = int(instance.loads[deployment])
        own = ranked[deployment]
        if single:
            by_total = sorted(own, key=lambda shape: (-(-need // int(capacity[shape])) * int(weights[shape]), shape))
            for shape in by_total:
                wanted = max(-(-need // int(capacity[shape])), instance.limits[deployment].minimum)
                if slack.most(left, counts, shape) >= wanted:
                    put(shape, wanted)
                    break
            else:
                return None
            continue
        replicas = 0
        for shape in own:
            placed = put(shape, need // int(capacity[shape])) if need > 0 else 0
            need -= placed * int(capacity[shape])
            replicas += placed
        if need > 0:
            # The rest: the lightest shape that ends it, else the best ones until it ends.
            short = need
            ends = sorted(
                own,
                key=lambda shape: (int(capacity[shape]) < short, int(weights[shape]) * max(1, -(-short // int(capacity[shape]))), shape),
            )
            for shape in ends:
                placed = put(shape, -(-need // int(capacity[shape])))
                need -= placed * int(capacity[shape])
                replicas += placed
                if need <= 0:
                    break
            if need > 0:
                return None
        for shape in sorted(own, key=lambda shape: (int(weights[shape]), shape)):
            replicas += put(shape, max(0, instance.limits[deployment].minimum - replicas))
        if replicas < instance.limits[deployment].minimum:
            return None
    return counts


def greedy(model: Model, seed: int = 0) -> tuple[int, ...] | None:
    """Cheapest counts over many orders of the deployments, or None when none of them serves every load.

    Weights are prices where the objective is cost, GPUs otherwise. Only rows over counts are respected here; where a model has others the
    caller completes the counts to a solution or drops them. Loads in buckets and spares are left to the solver.
    """
    instance = model.instance
    if instance.slicing or instance.shapes.spare_of is not None:
        return None
    weights = instance.shapes.price if instance.objective == "cost" else instance.shapes.gpus
    slack = _Slack(model)
    ranked = [
        sorted(
            (shape for shape in instance.of_deployment(deployment).tolist() if instance.shapes.capacity[shape] > 0),
            key=lambda shape: (int(weights[shape]) / int(instance.shapes.capacity[shape]), int(instance.shapes.gpus[shape]), shape),
        )
        for deployment in range(instance.deployments)
    ]
    best: IntArray | None = None
    best_weight = 0
    for order in _orders(instance.deployments, seed):
        for single in (False, True):
            if not single and any(limits.one_shape for limits in instance.limits):
                continue
            counts = _fill(instance, slack, order, weights, single, ranked)
            if counts is not None and (best is None or int(counts @ weights) < best_weight):
                best, best_weight = counts, int(counts @ weights)
    return None if best is None else tuple(int(count) for count in best)

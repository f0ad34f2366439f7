"""Choices with replicas to spare: no minimal choice has them, yet they let a domain hold more where it is tight."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planner.solve.decomposition.combining import Choices, choices
from planner.solve.decomposition.split import Parts
from planner.solve.survival.knapsack import SurvivingKnapsack
from planner.solve.survival.places import Room

SPARE = (1, 2, 4)
"""How many replicas of one shape are spared."""


def padded(parts: Parts, deployment: int, knapsack: SurvivingKnapsack, mine: Choices, most: int) -> Choices:
    """Choices of a deployment, and the `most` cheapest of them with replicas of each of their shapes to spare, as far as these are allowed."""
    nearest = mine.counts[np.argsort(mine.cost, kind="stable")[:most]]
    more = [mine.counts]
    for position in range(nearest.shape[1]):
        with_it = nearest[nearest[:, position] > 0]
        for number in SPARE:
            spared = with_it.copy()
            spared[:, position] += number
            more.append(spared)
    listed = np.unique(np.concatenate(more), axis=0)
    return choices(parts, deployment, listed[knapsack.allows(listed)])


def roomy(room: Room, parts: Parts, deployment: int, mine: Choices, per_domain: Mapping[int, int]) -> Choices:
    """Choices that let a domain hold as many replicas of each of their shapes as asked: what a choice serves beyond the rest is what one may hold."""
    shapes = parts.shapes[deployment]
    beyond = mine.counts @ room.question.instance.shapes.capacity[shapes] - room.question.rest[deployment]
    enough = np.ones(len(mine), dtype=np.bool_)
    for position, shape in enumerate(shapes.tolist()):
        if shape in per_domain:
            enough &= (mine.counts[:, position] == 0) | (beyond // room.capacity[shape] >= per_domain[shape])
    return mine.take(enough)

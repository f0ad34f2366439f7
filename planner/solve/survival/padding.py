"""Choices with replicas to spare: no minimal choice has them, yet they let a domain hold more where it is tight."""

from __future__ import annotations

import numpy as np

from planner.solve.decomposition.combining import Choices, choices
from planner.solve.decomposition.split import Parts
from planner.solve.survival.knapsack import SurvivingKnapsack

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

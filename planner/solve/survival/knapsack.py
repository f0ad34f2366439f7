"""Choices of one deployment that must survive a loss: what every real plan's counts satisfy, whatever their places.

Let T be what all replicas serve, L the load, R what must be left, and D the domains that can hold something. Each replica touches at least one domain and the fullest
one carries at least the mean, so every plan that survives has::

    T >= L,     T - T_g / D_g >= R  for every group g of shapes,     T - q_s k_s >= R  for every shape s in use

with k_s the replicas in the fullest domain: the least k for which sum_d min(k, held_{s,d}) >= n_s, where held_{s,d} of them may touch domain d. And the replicas of each group fit into D_g bins of size T - R. More replicas never break one of these, so minimal choices suffice; fewer never break a limit on the
number of replicas, so that they suffice with limits too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from planner.solve.decomposition.knapsack import Cover
from planner.solve.instance import BoolArray, IntArray
from planner.solve.survival.branching import NEAR, ROUNDING, Search
from planner.solve.survival.packing import ANY, packable

MORE = 8
"""How many times as many choices are looked at as are listed."""

FEW = 10
"""Most replicas for which a split over the domains is searched for."""


@dataclass(frozen=True)
class Group:
    """Shapes whose domains are known together: positions of its `shapes`, how many `domains` can hold one of them, and the most replicas in each."""

    shapes: frozenset[int]
    domains: int
    each: int = ANY


@dataclass(frozen=True)
class Cap:
    """Shapes that may have `most` replicas in all."""

    shapes: frozenset[int]
    most: int


@dataclass(frozen=True)
class SurvivingKnapsack:
    """The choices of one deployment: `capacities` q and `limits` of its shapes, `held` by domain [n], the load, and what must be left after a loss.

    There are at least `minimum` replicas, no more than the `caps` allow, and all of them are of shapes of one of the `families` (empty: of any).
    """

    capacities: tuple[int, ...]
    limits: tuple[int, ...]
    held: tuple[tuple[int, ...], ...]
    groups: tuple[Group, ...]
    asked: int
    rest: int
    minimum: int = 0
    caps: tuple[Cap, ...] = ()
    families: tuple[tuple[int, ...], ...] = ()
    seen: dict[tuple[int, ...], None] = field(default_factory=dict, compare=False, repr=False)
    """Choices found before: the next search starts from the best of them."""

    @cached_property
    def fullest(self) -> tuple[tuple[int, ...], ...]:
        """Replicas of each shape in its fullest domain at least, by the number of all of them from 0 to its limit."""
        return tuple(_fullest(held, limit) for held, limit in zip(self.held, self.limits, strict=True))

    @property
    def load(self) -> int:
        """Least that all replicas must serve."""
        domains = self.groups[-1].domains
        return max(self.asked, -(-self.rest * domains // (domains - 1)) if domains > 1 else self.asked)

    @property
    def _families(self) -> tuple[tuple[int, ...], ...]:
        return self.families or (tuple(range(len(self.capacities))),)

    def cheapest(self, costs: Sequence[int]) -> Cover:
        """Least cost, within `NEAR` of itself."""
        best, still_open, chosen = math.inf, math.inf, None
        for family in self._families:
            search = Search(self, family, costs, None, 0, FEW)
            for counts in self.seen:
                search.start(counts, sum(cost * number for cost, number in zip(costs, counts, strict=True)))
            search.run()
            still_open = min(still_open, search.open)
            if search.best < best:
                best, chosen = search.best, search.chosen
            if chosen is not None:
                self.seen[chosen] = None
        least = min(best, still_open)
        bound = None if least == math.inf else math.floor(least * (1 - NEAR) * (1 - ROUNDING))
        return Cover(chosen, bound)

    def near(self, costs: Sequence[int], threshold: int, most: int, few: int = FEW) -> IntArray:
        """List minimal choices of cost up to `threshold` that may be split over the domains, the `most` cheapest of those found, as counts [k, n].

        Not all are found where the search grows too long.
        """
        choices: list[tuple[int, ...]] = []
        for family in self._families:
            search = Search(self, family, costs, float(threshold), most * MORE, few)
            search.run()
            choices.extend(search.found)
        found = np.array(choices, dtype=np.int64).reshape(-1, len(self.capacities))
        money = [sum(cost * number for cost, number in zip(costs, counts, strict=True)) for counts in choices]
        kept: list[int] = []
        for number in sorted(range(len(found)), key=money.__getitem__):
            if len(kept) < most and (not self.rest or self.fits(choices[number])):
                kept.append(number)
        return found[kept]

    def allows(self, counts: IntArray) -> BoolArray:
        """Which choices [k, n] have no more replicas than allowed [k]."""
        kept = np.ones(len(counts), dtype=np.bool_)
        for cap in self.caps:
            kept &= counts[:, sorted(cap.shapes)].sum(axis=1) <= cap.most
        return kept

    def fits(self, counts: Sequence[int], spare: int = 0) -> bool:
        """Whether the replicas may be split over the domains with `spare` of the load to spare; False only where that is proved."""
        size = sum(q * n for q, n in zip(self.capacities, counts, strict=True)) - self.rest - spare
        if any(q * self.fullest[i][min(counts[i], self.limits[i])] > size for i, q in enumerate(self.capacities) if counts[i]):
            return False
        for group in self.groups:
            items = sorted(((self.capacities[i], counts[i]) for i in group.shapes if counts[i]), reverse=True)
            if not packable(tuple(items), group.domains, size, group.each):
                return False
        return True


def _fullest(held: tuple[int, ...], limit: int) -> tuple[int, ...]:
    if not held:
        return (0, *([1] * limit))
    together = np.minimum(np.array(held)[:, None], np.arange(max(held) + 1)).sum(axis=0)
    return tuple(np.searchsorted(together, np.arange(limit + 1)).tolist())

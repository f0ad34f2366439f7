"""The shapes and counts that plans of one value may have: all that the stages after the objective need to look at.

The objective leaves out shapes that ties may need, so its prices are carried over to the program of all shapes, row by row. Any prices give a bound there, and
with it the counts of every shape in plans up to the value that was found; most shapes then are in none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.solve.decomposition.alone import Alone
from planner.solve.decomposition.carrying import carried
from planner.solve.decomposition.columns import Bound, Generation
from planner.solve.decomposition.combining import Choices, choices, live_rows, replaced
from planner.solve.decomposition.joining import combinations
from planner.solve.decomposition.knapsack import Knapsack
from planner.solve.decomposition.listing import near
from planner.solve.decomposition.proof import Apart, take_apart
from planner.solve.decomposition.split import Parts, objective_unit, split
from planner.solve.decomposition.tightening import ranges
from planner.solve.instance import IntArray
from planner.solve.model import Model
from planner.solve.program import Terms

LISTED = 20_000
"""Most choices of one deployment in lists that are joined for the ties."""

THINNED = 1_000
"""Longest list that is thinned before: thinning a longer one takes longer than joining it."""


@dataclass(frozen=True)
class Narrowed:
    """Least and greatest count of every shape [n] in the plans that matter; where all of them were listed, the `counts` of one that is best in every stage, with their `values`."""

    low: IntArray
    high: IntArray
    counts: tuple[int, ...] = ()
    values: tuple[int, ...] = ()


def narrowed(
    apart: Apart,
    wide: Model,
    objective: Terms,
    upper: int,
    stages: Sequence[Terms],
    counts: Mapping[int, int] | None = None,
    *,
    proved: bool,
) -> Narrowed | None:
    """Counts of every shape of a wider program in plans of cost at most `upper`, best in `stages` one after another where that can be told.

    `counts` by source of the shape are those of one such plan. With `proved`, no plan costs less: then no replica of such a plan can be left out, where replicas cost something. None where the bound tells nothing of
    the wider program.
    """
    if apart.bound is None:
        return None
    parts = split(wide, objective, roughly=True)
    if parts is None:
        return None
    generation = Generation(parts, objective_unit(parts))
    bound = generation.at(carried(apart.generation.parts, apart.model.instance.source, apart.bound, parts, wide.instance.source))
    if bound is None or generation.impossible:
        return None
    minimal = proved and parts.complete and bool((parts.cost > 0).all())
    if minimal and not len(parts.others) and (listed := _listed(parts, bound, upper)) is not None:
        found = _best(parts, bound, upper, listed, stages)
        if found is not None:
            return found
    sources = wide.instance.source.tolist()
    chosen = [
        own or (tuple(counts.get(sources[shape], 0) for shape in mine.tolist()) if counts and isinstance(knapsack, Alone) else ())
        for own, mine, knapsack in zip(bound.chosen, parts.shapes, parts.knapsacks, strict=True)
    ]
    found_ranges = ranges(parts, bound, chosen, upper, minimal=minimal)
    shapes = len(wide.count)
    return Narrowed(found_ranges.low[:shapes], found_ranges.high[:shapes])


def _listed(parts: Parts, bound: Bound, upper: int) -> list[Choices] | None:
    """All minimal choices of every deployment in plans of cost at most `upper`; None where they are too many."""
    found = []
    for deployment, (knapsack, costs) in enumerate(zip(parts.knapsacks, bound.costs(parts), strict=True)):
        if not isinstance(knapsack, Knapsack):
            return None
        counts = near(knapsack, costs, bound.least[deployment] + upper * bound.scale - bound.exact, LISTED)
        if counts is None:
            return None
        found.append(choices(parts, deployment, counts))
    return found


def _best(parts: Parts, bound: Bound, upper: int, listed: list[Choices], stages: Sequence[Terms]) -> Narrowed | None:
    """Join all plans and keep those that are best in every stage; None where they are too many, or stages speak of more than counts."""
    shapes = len(parts.cost)
    if any(variable >= shapes for terms in stages for variable in terms):
        return None
    columns = np.array([[terms.get(shape, 0) for shape in range(shapes)] for terms in stages], dtype=np.int64)
    live = live_rows(parts, listed)
    # In a plan that is best in the stages no choice can be replaced by one that is better in them.
    listed = [
        replaced(mine, live, np.unique(mine.counts @ columns[:, own].T, axis=0, return_inverse=True)[1]) if len(mine) <= THINNED else mine
        for mine, own in zip(listed, parts.shapes, strict=True)
    ]
    joined = combinations(parts, listed, live, bound, upper, exactly=True)
    if joined is None or not len(joined.cost):
        return None
    values = []
    for column in columns:
        figures = joined.of([mine.counts @ column[own] for mine, own in zip(listed, parts.shapes, strict=True)])
        values.append(int(figures.min()))
        joined = joined.take(figures == values[-1])
    low, high = np.zeros(shapes, dtype=np.int64), np.zeros(shapes, dtype=np.int64)
    for place, deployment in enumerate(joined.order):
        used = listed[deployment].counts[np.unique(joined.taken[:, place])]
        low[parts.shapes[deployment]], high[parts.shapes[deployment]] = used.min(axis=0), used.max(axis=0)
    first = int(np.lexsort(joined.taken.T[::-1])[0])
    return Narrowed(low, high, tuple(joined.counts(parts, listed, first).tolist()), tuple(values))


def taken_apart(known: Apart | None, model: Model, objective: Terms) -> Apart | None:
    """What is known of a program taken apart, else take it apart now."""
    return known if known is not None and known.model is model else take_apart(model, objective)

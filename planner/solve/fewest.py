"""The fewest GPUs by deployments: counts of GPUs are few, so that the bound is mostly the optimum and what it leaves of every count holds a plan.

Many plans have the fewest GPUs, which is why a search for less finds no end. Asked instead is whether there is a plan of a given number, from the bound on, cheap ones first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.plan.outcome import Status
from planner.solve.decomposition.proof import Apart, take_apart
from planner.solve.decomposition.tightening import Ranges, ranges
from planner.solve.instance import Instance
from planner.solve.program import evaluate
from planner.solve.result import NOTHING, Result
from planner.solve.search import ANY, Search
from planner.solve.stages import expression

TRIES = 3
"""Numbers of GPUs that are asked about, from the bound on."""

PARTS = (8, 1)
"""What a plan may use above the bound, divided by these, is what each deployment may where one is sought, one after another."""

STEP_SHARE = 0.06
"""Share of the effort of each question."""


@dataclass(frozen=True)
class Fewest:
    """GPUs of a plan, the proved bound, and the counts of that plan by source of the shape."""

    gpus: int
    bound: int
    counts: dict[int, int]


def fewest(search: Search, instance: Instance) -> Fewest | None:
    """Find a plan of the fewest GPUs or nearly; None where deployments do not fall apart, or no plan is found near the bound."""
    model = search.build(instance)
    gpus, money = expression(model, "gpus"), expression(model, "cost")
    taken: list[Apart] = []

    def take() -> Result:
        found = take_apart(model, gpus)
        taken.extend([] if found is None else [found])
        return NOTHING

    search.guarded(take)
    if not taken or taken[0].bound is None:
        return None
    apart, start = taken[0], taken[0].bound
    unit, bound = apart.generation.unit, start.value
    for most in range(start.value, start.value + TRIES * unit, unit):
        for part in PARTS:
            left = _within(apart, most, part)
            program = model.program.within(model.count, left.low.tolist(), left.high.tolist())
            program.add_row("fixed", gpus, upper=most)
            result = search.run("gpus", program, money, STEP_SHARE, gap=ANY)
            if result.values is not None:
                value = evaluate(gpus, result.values)
                counts = (result.values[variable] for variable in model.count)
                return Fewest(value, min(bound, value), dict(zip(instance.source.tolist(), counts, strict=True)))
            if part == 1 and bound == most and result.status is Status.INFEASIBLE:
                bound = most + unit
    return None


def _within(apart: Apart, most: int, part: int) -> Ranges:
    """Counts of every shape in plans of at most so many GPUs in which no deployment uses up more than a part of what they may have above the bound."""
    assert apart.bound is not None
    parts, room = apart.generation.parts, most * apart.bound.scale - apart.bound.exact
    near = replace(apart.bound, exact=most * apart.bound.scale - room // part)
    found = ranges(parts, near, near.chosen, most, minimal=parts.complete)
    shapes = len(apart.model.count)
    return Ranges(found.low[:shapes], found.high[:shapes])

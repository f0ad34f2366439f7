"""The plan as it would be if GPUs were paid one by one, where nodes are billed whole: a bound, and counts near which a good plan lies.

A node that costs P and has at most F free GPUs costs P / F at least for every GPU that is used of it, so that with

::

    c_s = floor(a_s P / F)                               every shape s of a GPUs on the pool

no plan with whole nodes costs less than the cheapest one without them, and a plan of money U has counts that cost at most U in it. Its counts, packed into as few
nodes as can be, are a plan with whole nodes; those a few replicas away from it waste less.

Source: relaxation of the fixed charge by its slope, as in Nemhauser and Wolsey, "Integer and Combinatorial Optimization" (1988); the search near a
plan is local branching of Fischetti and Lodi, "Local branching" (2003), with a box in place of a ball.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.plan.outcome import Status
from planner.solve.instance import Instance, PoolScopes
from planner.solve.model import Model
from planner.solve.program import Program, Terms, evaluate
from planner.solve.result import NOTHING, Result
from planner.solve.stages import expression

if TYPE_CHECKING:
    from planner.solve.search import Search

STEPS = (1, 2)
"""How many replicas of a shape more or fewer are looked at, one box after another, each around the best plan so far."""

NEARBY_SHARE = 0.1
"""Share of the effort of each box around a plan."""

Run = Callable[[Program, Mapping[int, int]], Result]
"""One minimisation of a program from a solution."""


def unbilled(instance: Instance) -> Instance | None:
    """Give the question with GPUs paid one by one, at no more than they cost in whole nodes; None where no node is billed whole."""
    if all(pool.node_price is None for pool in instance.pools) or any(pool.untouched is not None for pool in instance.pools):
        return None
    price = instance.shapes.price.copy()
    for number, pool in enumerate(instance.pools):
        if pool.node_price is not None:
            own = instance.of_pool(number)
            price[own] = instance.shapes.gpus[own] * pool.node_price // max(1, _fullest(pool))
    pools = tuple(replace(pool, node_price=None) for pool in instance.pools)
    return replace(instance, shapes=replace(instance.shapes, price=price), pools=pools)


def _fullest(pool: PoolScopes) -> int:
    """Free GPUs of the node that has most."""
    nodes = pool.nodes or [()] * len(pool)
    return max((max(own) if sum(map(bool, own)) > 1 else free for own, free in zip(nodes, pool.free.tolist(), strict=True)), default=0)


def near_unbilled(search: Search, model: Model, objective: Terms) -> Result:
    """Bound of a question with nodes billed whole by the one without, and the best plan near that one's; nothing where it does not fall apart."""
    question = unbilled(model.instance)
    if question is None or search.over:
        return NOTHING
    loose = search.build(question)
    found = search.take_apart("cost", loose, expression(loose, "cost"))
    search.loose = search.apart
    if found.status is Status.INFEASIBLE or found.bound is None:
        return NOTHING
    bound = replace(NOTHING, bound=found.bound)
    if found.values is None or model.instance.seats:
        # Beside replicas that run, counts alone say little about who stays.
        return bound
    values = search.complete(model, [found.values[variable] for variable in loose.count], objective)
    if values is None:
        return bound
    start = Result(Status.FEASIBLE, values, evaluate(objective, values), found.bound, "effort")
    return better_near(model, objective, start, lambda box, hint: search.run("cost", box, objective, NEARBY_SHARE, hint))


def better_near(model: Model, objective: Terms, known: Result, run: Run) -> Result:
    """Look for a cheaper plan in boxes of counts around the best one that is known."""
    best = known
    for step in STEPS:
        assert best.values is not None
        counts = [best.values[variable] for variable in model.count]
        box = model.program.within(model.count, [max(0, count - step) for count in counts], _above(counts, step))
        box.add_row("bound", objective, upper=best.objective)
        found = run(box, dict(enumerate(best.values)))
        if found.values is not None and found.objective is not None and (best.objective is None or found.objective < best.objective):
            best = replace(best, values=found.values, objective=found.objective)
    return best


def _above(counts: Sequence[int], step: int) -> list[int]:
    """Greatest counts of a box; of shapes that are not in use half as many."""
    return [count + step if count else (step + 1) // 2 for count in counts]

"""The greatest share of all loads that can be served, found share by share.

Whether every deployment can have a given share is a question of covering loads, with all that makes those small: shapes that others replace leave, counts end
where the load does, and CP-SAT says in moments what it cannot say in minutes while the share is a variable. Where deployments are many, prices of the room lead
from the top down (`fullest.py`); else the interval between a share that a plan serves and one that none does is halved.
"""

from __future__ import annotations

from dataclasses import replace

from planner.plan.outcome import Status
from planner.solve.decomposition.proof import MANY
from planner.solve.dominance import worth_keeping
from planner.solve.fullest import fullest
from planner.solve.result import Result
from planner.solve.search import ANY, Search
from planner.solve.shares import Served, at_share, served
from planner.solve.stages import expression

FIRST_SHARE = 0.02
"""Share of the effort of the run in which the share is a variable."""

STEPS = 30
"""Most shares that are asked about."""

MISSES = 2
"""Most questions that may end without an answer while a plan is sought, and while what is out of reach is proved."""

STEP_SHARE = 0.03
"""Share of the effort of each question."""

NEAR = 2e-4
"""Relative distance between the share of a plan and one that was not reached at which no plan between them is sought."""


def most_served(search: Search) -> Served | Result:
    """Find the greatest share, or a result without a plan."""
    instance = search.instance
    model = search.build(instance)
    assert model.share is not None
    if instance.deployments >= MANY and (full := fullest(search, model.program.upper[model.share])) is not None:
        return full
    first = search.run("throughput", model.program, expression(model, "throughput"), FIRST_SHARE)
    if first.status is Status.INFEASIBLE:
        first = search.confirmed(model, expression(model, "throughput"))
    if first.values is None and first.status is Status.INFEASIBLE:
        return first
    most = model.program.upper[model.share]
    bound = most if first.bound is None else min(most, -first.bound)
    found = Served(0, bound, {}) if first.values is None else served(instance, model, first.values, bound)
    return _halve(search, found) if found.share < found.bound else found


def _halve(search: Search, found: Served) -> Served | Result:
    """Ask about shares between the best plan and the least share that is out of reach, then between what was not reached and what is proved to be."""
    bound, missed, misses = found.bound, (found.bound + 1, 0), [0, 0]
    for _ in range(STEPS):
        ends = min(bound, missed[0] - 1)
        seek = misses[0] <= MISSES and ends - found.share > (NEAR * ends if missed[0] <= bound else 0)
        share = (found.share + ends + 1) // 2 if seek else (max(missed[1], found.share) + bound + 1) // 2
        if search.over or found.share >= bound or misses[1] > MISSES or (not seek and missed[1] >= bound):
            break
        question = at_share(search.instance, share)
        model = search.build(question.keep(worth_keeping(question, ties=False)))
        # Money leads the way to a plan; the first one will do.
        result = search.run("throughput", model.program, expression(model, question.objective), STEP_SHARE, gap=ANY)
        if result.status is Status.INFEASIBLE:
            bound = share - 1
        elif result.values is not None:
            found = served(search.instance, model, result.values, bound)
        else:
            misses[not seek] += 1
            missed = min(missed[0], share), max(missed[1], share)
    if not found.counts:
        return Result(Status.UNKNOWN, bound=-bound, stopped_by=search.reason("effort"))
    return replace(found, bound=bound)

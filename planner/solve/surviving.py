"""Questions whose deployments survive the loss of a failure domain: which way to answer them, and the answer as a decision."""

from __future__ import annotations

import numpy as np

from planner.plan.outcome import Status
from planner.solve.instance import Instance
from planner.solve.layout import pin_of
from planner.solve.model import Model
from planner.solve.program import Program, evaluate
from planner.solve.result import Result
from planner.solve.search import Decision, Search, Stage
from planner.solve.stages import expression, stages_after
from planner.solve.survival.places import Room
from planner.solve.survival.question import Question, covered
from planner.solve.survival.search import Survival, survive
from planner.solve.survival.seats import seats

DIRECT = 150
"""Most places of replicas that the program counting them one by one decides alone."""


def places_counted(instance: Instance) -> int:
    """Variables of the program that counts replicas by failure domain, about: a shape in a domain each, a replica and a domain each where it may span several."""
    columns, total = instance.shapes, 0
    for number, pool in enumerate(instance.pools):
        kinds = instance.kinds_of_pool(number)
        if not kinds:
            continue
        labels = np.array([[nodes[0] for nodes in pool.domains[kind]] for kind in kinds], dtype=np.int64)
        domains = len(np.unique(labels, axis=1).T)
        for shape in instance.of_pool(number).tolist():
            if instance.rules_of(int(columns.deployment[shape])).kinds:
                spans = columns.groups[shape] > 1 and (pin_of(instance, shape) is None or set(kinds) != {"leaf"})
                load = int(instance.loads[columns.deployment[shape]])
                total += domains * (-(-load // max(1, int(columns.capacity[shape]))) if spans else 1)
    return total


def large(instance: Instance) -> bool:
    """Whether counting every place would say little in the time there is, and counts first and places after answer the question."""
    return covered(instance) and places_counted(instance) > DIRECT


def try_survival(search: Search, instance: Instance) -> Survival | None:
    """Answer by counts first and places after; None when Ctrl-C ends it."""
    found: list[Survival] = []

    def run() -> Result:
        found.append(survive(instance, search.limits()))
        return found[0].result

    search.guarded(run)
    return found[0] if found else None


def told(search: Search, survival: Survival) -> Decision:
    """Give the answer as a decision; ties are valued and not broken."""
    result = survival.result
    if survival.places is None or result.values is None or result.objective is None:
        return Decision(result.status, stopped_by=search.reason(result.stopped_by))
    model = _counts_only(survival.question, result.values)
    decision = Decision(result.status, model, result.values)
    decision.stopped_by = None if result.closed else search.reason(result.stopped_by)
    decision.placed = seats(Room(survival.question), survival.places)
    decision.stages.append(Stage(survival.question.instance.objective, result.objective, result.bound))
    for name in stages_after(survival.question.instance):
        value = evaluate(expression(model, name), result.values)
        decision.stages.append(Stage(name, value, 0 if value == 0 else None))
    decision.interrupted = search.interrupted
    return decision


def _counts_only(question: Question, values: tuple[int, ...]) -> Model:
    program = Program([0] * len(values), list(values))
    count = tuple(range(len(values)))
    return Model(question.instance, program, count, (), dict(zip(count, question.instance.shapes.price.tolist(), strict=True)))


def unproved(survival: Survival) -> bool:
    """Whether the program that counts every place should be asked as well."""
    return survival.result.values is None and survival.result.status is not Status.INFEASIBLE

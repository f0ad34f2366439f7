"""Whether a changed question has a plan, and how little would be enough: small solves under one allowance of work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from planner.plan.outcome import Status
from planner.solve import cpsat, highs
from planner.solve.decomposition.proof import decompose
from planner.solve.dominance import worth_keeping
from planner.solve.greedy import greedy
from planner.solve.instance import NO_RULES, Budget, DeploymentRules, Instance, IntArray, PoolScopes, ReplicaLimits
from planner.solve.model import Model, Rule, build
from planner.solve.program import Program, Terms
from planner.solve.result import Result, better
from planner.solve.work import PER_COEFFICIENT, PER_ITERATION, PER_ITERATION_COEFFICIENT, RELAXED, Work, coefficients

TREE = 300
"""Nodes of the search tree that a question gets from HiGHS."""

LARGE = 4_000
"""Coefficients above which HiGHS is asked for its linear program only: its first node alone has taken 10 s of larger ones."""

MOST_VARIABLES = 2_000
"""Larger programs of replicas counted by failure domain are not tried."""

MOST_HOMES = 20_000
"""Places of replicas of one group above which even these are not counted."""

SMALL = 1_000
"""Coefficients up to which a second opinion is worth its work where there is a solution already."""

PER_LISTED = 0.01
"""Work of taking the deployments apart, by shapes."""


class Asker:
    """Questions with and without a plan, asked of both solvers; `doubts` counts those that were left open.

    An answer is True where a plan was found, False where it is proved that there is none, and None where neither is known.
    """

    def __init__(self, rules: Sequence[Rule], limits: cpsat.Limits, work: Work | None = None) -> None:
        self.rules, self.limits = rules, limits
        self.work = Work() if work is None else work
        self.doubts = 0

    def build(self, instance: Instance) -> Model:
        """Write a question down."""
        model = build(instance, self.rules)
        self.work.spend(PER_COEFFICIENT * coefficients(model.program))
        return model

    def minimise(self, program: Program, objective: Terms, hint: Terms | None = None) -> Result:
        """Minimise with CP-SAT, and with HiGHS where that proves nothing; of large programs the linear one comes first, as a bound."""
        if self.work.over:
            self.doubts += 1
            return Result(Status.UNKNOWN, stopped_by="effort")
        many = coefficients(program) > LARGE
        found = self._by_highs(program, objective, relaxed=True) if many and highs.available() else None
        if found is not None and found.closed:
            return found
        result = self._by_cpsat(program, objective, hint)
        result = result if found is None else better(result, found)
        if not result.closed and self._wants_second(program, result):
            result = better(result, self._by_highs(program, objective))
        self.doubts += not result.closed
        return result

    def _wants_second(self, program: Program, result: Result) -> bool:
        """Whether HiGHS is asked as well: of small programs always, of larger ones where there is no solution yet."""
        size = coefficients(program)
        return size <= (SMALL if result.values is not None else LARGE) and highs.available() and not self.work.over

    def bound(self, program: Program, objective: Terms) -> int | None:
        """Bound of an objective by the linear program alone, at least 0; None where even that has no solution."""
        if not highs.available() or self.work.over:
            return 0
        found = self._by_highs(program, objective, relaxed=True)
        return None if found.status is Status.INFEASIBLE else max(0, found.bound or 0)

    def least_cost(self, instance: Instance) -> Result:
        """Least money of any plan, its bound, or that there is none."""
        model = self.build(replace(instance, objective="cost"))
        result = self.minimise(model.program, model.cost)
        if result.closed or self.work.over:
            return result
        self.work.spend(PER_LISTED * len(instance.shapes))
        apart = decompose(model, model.cost, self._limits())
        return result if apart is None else better(apart, result)

    def possible(self, instance: Instance) -> bool | None:
        """Whether there is a plan, cheap questions first.

        What is impossible without the rules about places is impossible; what single groups can do is possible. Only between the two all shapes are
        tried, and only while they make a program of a size that is answered at once.
        """
        if instance.objective != "throughput":
            instance = replace(instance, objective="cost")
        if not any(rule.kinds for rule in instance.rules):
            return self._solvable(instance)
        if self._solvable(without_places(instance)) is False:
            return False
        single = _single_groups(instance)
        if single is not instance and self._solvable(single, MOST_HOMES):
            return True
        return self._solvable(instance, MOST_HOMES if single is instance else MOST_VARIABLES)

    def _solvable(self, instance: Instance, most: int | None = None) -> bool | None:
        """Whether a solution is found: linear programs prove the most and are fast; solutions are checked in integers. Programs above `most` variables are left."""
        if self.work.over or (most is not None and _homes(instance) > most):
            self.doubts += 1
            return None
        model = self.build(instance)
        program = model.program
        if most is not None and len(program.lower) > most:
            self.doubts += 1
            return None
        many = coefficients(program) > LARGE
        if highs.available():
            found = self._by_highs(program, {}, relaxed=many)
            if found.values is not None or found.closed:
                return found.values is not None
        counts = greedy(model, self.limits.seed) if many and not self.work.over else None
        found = self._by_cpsat(program, {}, None if counts is None else dict(zip(model.count, counts, strict=True)))
        if found.values is None and found.status is not Status.INFEASIBLE:
            self.doubts += 1
            return None
        return found.values is not None

    def _by_highs(self, program: Program, objective: Terms, *, relaxed: bool = False) -> Result:
        result = highs.minimise(program, objective, TREE, self.work.seconds, self.limits.seed, relaxed=relaxed)
        size = coefficients(program)
        each = PER_ITERATION + PER_ITERATION_COEFFICIENT * size
        self.work.spend(2 * PER_COEFFICIENT * size + (RELAXED * each if relaxed else each) * result.work)
        return result

    def _by_cpsat(self, program: Program, objective: Terms, hint: Terms | None) -> Result:
        result = cpsat.minimise(program, objective, self._limits(), hint)
        self.work.spend(2 * PER_COEFFICIENT * coefficients(program) + result.work)
        return result

    def _limits(self) -> cpsat.Limits:
        left = max(0.0, self.work.left - self.work.floor)
        return replace(self.limits, effort=min(self.limits.effort, left), seconds=self.work.seconds)


def without_places(instance: Instance) -> Instance:
    """The question without the rules about where replicas stand: what is impossible then is impossible."""
    return replace(instance, rules=tuple(replace(rule, spread=None, resilience=None, only="") for rule in instance.rules))


def loads_alone(instance: Instance) -> Instance:
    """The question without any rule, limit or budget: the loads that must be served and the room only."""
    rules = tuple(DeploymentRules(priority=rule.priority, may_go_unserved=rule.may_go_unserved) for rule in instance.rules)
    return replace(
        instance,
        rules=rules if any(rule != NO_RULES for rule in rules) else (),
        limits=tuple(ReplicaLimits() for _ in instance.limits),
        budget=Budget(),
        shapes=replace(instance.shapes, container=np.zeros_like(instance.shapes.container)),
    )


def without_deployment(instance: Instance, number: int) -> Instance:
    """The question without one deployment."""
    loads, limits, rules = instance.loads.copy(), list(instance.limits), list(instance.rules)
    loads[number], limits[number] = 0, ReplicaLimits()
    if rules:
        rules[number] = NO_RULES
    slicing = tuple(None if deployment == number else own for deployment, own in enumerate(instance.slicing))
    others = instance.keep(instance.shapes.deployment != number)
    return replace(others, loads=loads, limits=tuple(limits), rules=tuple(rules), slicing=slicing)


def fewer_shapes(instance: Instance) -> Instance:
    """The same question over the shapes that it, or the same one with more room, more money or fewer rules, may need."""
    endless: IntArray = np.array([1 << 40], dtype=np.int64)
    roomy = tuple(PoolScopes(endless, endless, *(np.zeros_like(endless),) * 4, (), ()) for _ in instance.pools)
    columns = instance.shapes
    if instance.budget.per_hour is None:
        # Where money is not limited a dearer shape helps as much.
        columns = replace(columns, price=np.zeros_like(columns.price))
    kept = worth_keeping(replace(instance, shapes=columns, pools=roomy, objective="cost"), ties=False)
    # What serves nothing still is a replica where the load served is to be greatest.
    return instance.keep(kept | (instance.objective == "throughput") & (columns.capacity <= 0))


def gallop(enough: Callable[[int], bool | None], start: int, most: int, guess: int | None = None) -> tuple[int | None, int]:
    """Least number found from `start` to `most` that is enough, by steps that double and then halve; and the number below which none is.

    All below `start` are known not to be enough, and so are all below one that is proved not to be. `guess`, from a simpler question, is tried first. None where no
    number up to `most` is known to be enough.
    """
    below, proved, step = start - 1, start, 1
    high = start if guess is None else max(start, guess)
    while True:
        if high > most:
            return None, proved
        answer = enough(high)
        if answer:
            break
        proved = high + 1 if answer is False else proved
        if high == most:
            return None, proved
        below, high, step = high, min(high + step, most), 2 * step
    while high - below > 1:
        middle = (below + high) // 2
        answer = enough(middle)
        if answer:
            high = middle
            continue
        below, proved = middle, middle + 1 if answer is False else proved
    return high, proved


def _single_groups(instance: Instance) -> Instance:
    """Only shapes of one group, where every deployment has one; else all."""
    alone = instance.keep(instance.shapes.groups == 1)
    fewer = len(alone.shapes) < len(instance.shapes)
    return alone if fewer and set(alone.shapes.deployment.tolist()) == set(instance.shapes.deployment.tolist()) else instance


def _homes(instance: Instance) -> int:
    """Failure domains that replicas of each shape are counted in, summed over the shapes, about: one by one where they may span several."""
    columns, total = instance.shapes, 0
    for number, pool in enumerate(instance.pools):
        kinds = [kind for kind in instance.kinds_of_pool(number) if kind in pool.domains]
        domains = max((len({label for nodes in pool.domains[kind] for label in nodes}) for kind in kinds), default=0)
        for shape in instance.of_pool(number).tolist():
            deployment, each = int(columns.deployment[shape]), max(1, int(columns.capacity[shape]))
            if instance.rules_of(deployment).kinds:
                total += domains * (-(-int(instance.loads[deployment]) // each) if columns.groups[shape] > 1 else 1)
    return total

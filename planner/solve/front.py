"""The cheapest plan at every latency that is worth asking for: money against the worst time, each point proved.

Let c(T) be the least money of a plan whose shapes all have a time of at most T. It never rises with T, and it is a step function of the distinct
times of the menu. Its steps are the Pareto front: two thresholds with equal c leave nothing to find between them, so the interval
between the fastest and the loosest threshold is halved only where c differs at its ends. Every plan moves its threshold down to the worst
time that it really has, a bound proved at one threshold holds at every tighter one, and a plan found at one starts the search at every looser one.

Source: the epsilon-constraint method of Haimes, Lasdon and Wismer, "On a bicriterion formulation of the problems of integrated system
identification and system optimization", IEEE Transactions on Systems, Man, and Cybernetics 1 (1971).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.plan.outcome import Outcome, Status
from planner.plan.shape import Shape
from planner.solve.answer import outcome_of
from planner.solve.clock import Clock
from planner.solve.dominance import worth_keeping
from planner.solve.instance import Instance, IntArray
from planner.solve.model import Model, Rule
from planner.solve.objectives import finish, hopeless, least_threshold, serve_most
from planner.solve.options import SolveOptions
from planner.solve.reader import read
from planner.solve.result import NOTHING, Result, better
from planner.solve.rules import RULES
from planner.solve.search import Decision, Search
from planner.solve.stages import expression

if TYPE_CHECKING:
    from planner.problem.documents import Problem
    from planner.topology.fabric import Fabric


@dataclass(frozen=True)
class FrontPoint:
    """One step of the front: worst time of the plan [ns], its decision, and whether no plan is both as fast and cheaper, or faster and as cheap."""

    time: int
    decision: Decision
    proved: bool


@dataclass(frozen=True)
class _Step:
    """Cheapest plan known at a threshold: the solution of `model`, and its `counts` by shape of the whole menu."""

    result: Result
    model: Model
    counts: dict[int, int]


class _Front:
    """The search for the steps of one instance; `times` [ns] is the column that latency is measured by."""

    def __init__(self, instance: Instance, options: SolveOptions, rules: Sequence[Rule], times: IntArray) -> None:
        self.instance, self.options, self.rules = instance, options, rules
        self.times = times
        # What a faster shape replaces at no more money is needed under no threshold.
        lasting = worth_keeping(instance, ties=False, worst=times)
        self.needed, self.needed_times = instance.keep(lasting), times[lasting]
        self.time_of = dict(zip(instance.source.tolist(), times.tolist(), strict=True))
        self.thresholds = sorted(set(self.needed_times.tolist()))
        self.steps: dict[int, _Step] = {}
        self.promised: list[int] = []
        self.unsure = False
        self.interrupted = False
        self._clock = Clock.of(options.time_limit)

    def search(self, instance: Instance) -> Search:
        """Open a search with what is left of the time and the promises made."""
        found = Search(instance, replace(self.options, time_limit=self._clock.left), self.rules)
        found.promised = list(self.promised)
        return found

    @property
    def over(self) -> bool:
        """Whether the time is up or the user has interrupted."""
        return self.interrupted or self._clock.up

    def run(self) -> tuple[tuple[FrontPoint, ...], bool]:
        """Find the steps, the cheapest first, and tell whether all of the front was looked at."""
        if hopeless(self.needed):
            return (), True
        search = self.search(self.needed)
        short = serve_most(search, self.needed)
        if short is not None and short.values is None:
            return (), short.closed
        self.promised, self.unsure = search.promised, short is not None
        fastest = self.fastest()
        if isinstance(fastest, Result):
            return (), fastest.closed
        low, high = self.at(fastest), len(self.thresholds) - 1
        if low is not None:
            high = self.at(high) or low
            self.between(low, high)
        complete = not self.over
        return tuple(self.settled(index) for index in self.front()), complete and low is not None

    def fastest(self) -> int | Result:
        """Position of the tightest threshold that allows a plan, unsure where tighter ones are not ruled out; the result without a plan where none does."""
        search = self.search(replace(self.needed, objective="latency"))
        found = least_threshold(search, search.instance, "latency", self.needed_times)
        self.interrupted = self.interrupted or search.interrupted
        if isinstance(found, Result):
            return found
        self.unsure = self.unsure or found.bound != found.value
        return self.thresholds.index(found.value)

    def model(self, index: int, also: Sequence[int] = ()) -> tuple[Search, Model]:
        """Search and model of the shapes needed within a threshold; `also` are shapes to keep though another dominates them."""
        inside = self.needed.keep(self.needed_times <= self.thresholds[index])
        pruned = inside.keep(worth_keeping(inside, ties=False) | np.isin(inside.source, also))
        search = self.search(pruned)
        return search, search.build(pruned)

    def tied(self, index: int, also: Sequence[int]) -> tuple[Search, Model]:
        """Search whose ties may use every shape within a threshold, and the model of those needed."""
        inside = self.instance.keep(self.times <= self.thresholds[index])
        pruned = inside.keep(worth_keeping(inside) | np.isin(inside.source, also))
        search = self.search(pruned)
        return search, search.build(pruned.keep(worth_keeping(pruned, ties=False) | np.isin(pruned.source, also)))

    def at(self, index: int) -> int | None:
        """Find the cheapest plan within a threshold and file it under the threshold that it really needs; None where the search ended without one."""
        looser = [step.result.bound for other, step in self.steps.items() if other >= index and step.result.bound is not None]
        tighter = max((other for other in self.steps if other <= index), default=None)
        start = None if tighter is None else self.steps[tighter]
        search, model = self.model(index, () if start is None else list(start.counts))
        known = replace(NOTHING, bound=max(looser, default=None))
        if start is not None and start.result.objective is not None:
            values = search.complete(model, _counts(model, start.counts))
            if values is not None:
                known = better(replace(known, status=Status.FEASIBLE, values=values, objective=start.result.objective), known)
        objective = expression(model, self.instance.objective)
        result = known if known.closed else search.primary(self.instance.objective, model, objective, known)
        self.interrupted = self.interrupted or search.interrupted
        if result.values is None or result.objective is None:
            return None
        counts = {int(shape): result.values[variable] for shape, variable in zip(model.instance.source, model.count, strict=True)}
        used = {shape: count for shape, count in counts.items() if count}
        worst = max((self.time_of[shape] for shape in used), default=self.thresholds[0])
        needed = self.thresholds.index(worst)
        # Between the two nothing is cheaper: the bound holds at both, and so does the plan.
        self.steps[index] = _Step(result, model, used)
        self.steps[needed] = _Step(replace(result, bound=self.bound(needed)), model, used)
        return needed

    def between(self, low: int, high: int) -> None:
        """Find the steps strictly between two thresholds whose cheapest plans are known, each filed at what it needs."""
        if high - low < 2 or self.over or self.cost(low) == self.cost(high):
            return
        middle = (low + high) // 2
        needed = self.at(middle)
        if needed is None:
            return
        self.between(low, needed)
        self.between(middle, high)

    def cost(self, index: int) -> int | None:
        """Least money known at a threshold."""
        return self.steps[index].result.objective

    def front(self) -> list[int]:
        """Thresholds whose plans no other plan beats or equals in both, the cheapest first."""
        kept: list[int] = []
        for index in sorted(self.steps):
            if not kept or (self.cost(index) or 0) < (self.cost(kept[-1]) or 0):
                kept.append(index)
        return kept[::-1]

    def settled(self, index: int) -> FrontPoint:
        """Break the ties of a step at its own threshold, and tell what is proved of it."""
        step = self.steps[index]
        search, model = self.tied(index, list(step.counts))
        bound = self.bound(index)
        values = search.guarded(lambda: Result(Status.FEASIBLE, search.complete(model, _counts(model, step.counts)))).values
        if values is None:
            # The time is up: the plan stays as it was found, its ties unbroken.
            model, values = step.model, step.result.values
        status = Status.OPTIMAL if bound == step.result.objective and not self.unsure else Status.FEASIBLE
        why = None if status is Status.OPTIMAL else step.result.stopped_by or ("interrupt" if self.interrupted else "effort")
        result = Result(status, values, step.result.objective, bound, why)
        faster = self.bound(index - 1) if index else None
        beaten = any(other < index for other in self.steps) and (faster is None or faster <= (step.result.objective or 0))
        return FrontPoint(self.thresholds[index], finish(search, model, result), status is Status.OPTIMAL and not beaten)

    def bound(self, index: int) -> int | None:
        """Best bound proved at a threshold or a looser one."""
        bounds = [step.result.bound for other, step in self.steps.items() if other >= index and step.result.bound is not None]
        return max(bounds, default=None)


def _counts(model: Model, counts: dict[int, int]) -> list[int]:
    """Counts by shape of the menu as counts by shape of a model."""
    return [counts.get(int(shape), 0) for shape in model.instance.source]


def front(instance: Instance, options: SolveOptions, times: IntArray, rules: Sequence[Rule] = RULES) -> tuple[tuple[FrontPoint, ...], bool]:
    """Pareto front of the instance's objective, cost or gpus, against the worst of `times` [ns] among the shapes used.

    Returns
    -------
    tuple of FrontPoint
        The cheapest first; each next one is faster and costs more.
    bool
        Whether all of the front was looked at before a limit was met.
    """
    return _Front(instance, options, rules, times).run()


def solve_front(
    problem: Problem, fabric: Fabric, shapes: Sequence[Shape], loads: Sequence[float], options: SolveOptions, by: str = "tpot"
) -> tuple[tuple[tuple[Outcome, bool], ...], bool]:
    """Find the front of a problem with every plan placed on GPUs: outcome and whether the point is proved, the cheapest first.

    Parameters
    ----------
    problem
        Deployments with their limits; its objective, cost or gpus, is what latency is weighed against.
    fabric, shapes, loads, options
        As for `solve`.
    by
        The time that latency is measured by: tpot or ttft.
    """
    instance = read(problem, fabric, shapes, loads)
    points, complete = front(instance, options, instance.shapes.tpot if by == "tpot" else instance.shapes.ttft)
    return tuple((outcome_of(point.decision, fabric, shapes), point.proved) for point in points), complete

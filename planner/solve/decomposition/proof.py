"""Plans from combined choices, and the proof by listing every choice that a better plan could use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import NamedTuple

import numpy as np

from planner import interrupts
from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.clock import Clock
from planner.solve.decomposition.alone import Alone
from planner.solve.decomposition.columns import STEADY, Bound, Generation
from planner.solve.decomposition.combining import Choices, choices, combine, live_rows, undominated
from planner.solve.decomposition.joining import join
from planner.solve.decomposition.knapsack import Knapsack
from planner.solve.decomposition.listing import STATES_LIMIT, near
from planner.solve.decomposition.split import Parts, objective_unit, split
from planner.solve.decomposition.tightening import Ranges, ranges
from planner.solve.instance import BoolArray
from planner.solve.model import Model
from planner.solve.program import Terms, evaluate
from planner.solve.result import NEAR, NOTHING, Result

FIRST_SLACK = 1e-7
"""Distance from the bound, as a share of it, within which choices are listed first: short lists give plans and raise the bound cheaply."""

WIDER = 3.0
"""How much further the next list reaches when nothing is proved; its square where the last step added little."""

GROWN = 1.5
"""Growth of the lists from one step to the next that is not little."""

MANY = 8
"""Deployments from which taking them apart comes first; few are often decided at once as a whole."""

NEARLY_STEADY = 1e-5
"""Relative distance of the master from the bound at which the generation ends where deployments are few."""

NEAR_ALONE = 1e-3
"""Relative gap below which little is left to prove where some deployments are priced as programs and no lists of theirs can be had."""

NEAR_PART = 0.25
"""Part of the effort of a combination there, where variables beside the counts (fill patterns) keep lists from being joined without a solver."""

ROUNDS = 24
"""Most lists of one search."""


Completion = Callable[[Sequence[int]], tuple[int, ...] | None]
"""Values of all variables of the program for given counts, None where no solution has them."""


class Reach(NamedTuple):
    """How far one search goes, in counts that are the same on every machine.

    `listed` choices of one deployment at most are a complete list, with `partial` ones on the way; `combined` of all deployments are combined at once, by
    CP-SAT `shared` a deployment on average; lists end at `work` choices in all, or after `misses` steps that missed their end, for a list too long or a
    combination cut short. Lists of up to `thinned` choices are thinned before they are joined for the first time, longer ones where that join grows too long (0: all at once).
    """

    listed: int
    partial: int
    combined: int
    shared: int
    work: int
    misses: int
    thinned: int


FAR = Reach(listed=60_000, partial=STATES_LIMIT, combined=3_000, shared=60, work=300_000, misses=2, thinned=0)
"""Where many deployments leave little between the bound and the optimum."""

CLOSE = Reach(listed=6_000, partial=100_000, combined=300, shared=60, work=8_000, misses=0, thinned=300)
"""Where few deployments may leave so much that no list helps, and the program as a whole is small."""


def decompose(model: Model, objective: Terms, limits: cpsat.Limits, report: cpsat.Report | None = None) -> Result | None:
    """Minimise by deployments: bound by column generation, plan by combining listed choices, proof when the lists reach far enough.

    Let `bound` be the best bound, at prices pi. In a plan of cost at most bound + d, every deployment's choice n has

        (c + pi a) n <= its own least + d

    because all terms of the bound together exceed their least by at most d. So lists of all minimal choices within d decide everything up to bound + d:
    CP-SAT over the lists finds the best plan there, or there is none and the bound rises to bound + d. None where the program does not fall apart.
    `limits.effort` holds for each combination. `report` is told of every better plan and bound.
    """
    apart = take_apart(model, objective)
    if apart is None:
        return None
    return Result(Status.INFEASIBLE) if apart.bound is None else apart.prove(limits, report)


@dataclass(frozen=True)
class Apart:
    """A program taken apart: its deployments' columns and the best bound that they give, None where the program has no solution."""

    model: Model
    objective: Terms
    generation: Generation
    bound: Bound | None

    def prove(
        self,
        limits: cpsat.Limits,
        report: cpsat.Report | None = None,
        known: Result = NOTHING,
        reach: Reach = FAR,
        complete: Completion | None = None,
    ) -> Result:
        """Find the best plan, or one better than what is `known`, as far as `reach` goes; not far where a better bound is known already.

        Counts that the parts allow and that break a row left out of them are handed to `complete`, which may find values for the variables beside them that do not.
        """
        assert self.bound is not None
        if reach.misses == 0 and known.bound is not None and known.bound > self.bound.value:
            return known
        return _Proof(self, self.bound, limits, report, known, reach, complete).run()

    @property
    def with_alone(self) -> bool:
        """Whether some deployment is a program of its own."""
        return any(isinstance(knapsack, Alone) for knapsack in self.generation.parts.knapsacks)

    def ranges(self, upper: int, *, minimal: bool = True) -> Ranges | None:
        """Counts of every shape in plans of cost at most `upper`, without replicas that may be left out where `minimal`; None where nothing is known."""
        if self.bound is None:
            return None
        parts = self.generation.parts
        return ranges(parts, self.bound, self.bound.chosen, upper, minimal=minimal and parts.complete)


def take_apart(model: Model, objective: Terms, late: Callable[[], bool] | None = None) -> Apart | None:
    """Take a program apart and bound it by column generation; None where it does not fall apart or the generation ends without a bound, be it because it is `late`.

    Where deployments are few, the optimum is further from the bound than the last rounds of the generation would move it.
    """
    parts = split(model, objective)
    if parts is None:
        return None
    generation = Generation(parts, objective_unit(parts), STEADY if len(parts.shapes) >= MANY else NEARLY_STEADY, late=late)
    bound = generation.run()
    if generation.impossible:
        return Apart(model, objective, generation, None)
    return None if bound is None else Apart(model, objective, generation, bound)


class _Proof:
    """The lists, the best plan and the bound of one search."""

    def __init__(
        self,
        apart: Apart,
        start: Bound,
        limits: cpsat.Limits,
        report: cpsat.Report | None,
        known: Result,
        reach: Reach,
        complete: Completion | None,
    ) -> None:
        generation = apart.generation
        self.report, self.far, self.complete = report, reach, complete
        self.model, self.objective, self.limits = apart.model, apart.objective, limits
        self.generation, self.start = generation, start
        self.parts: Parts = generation.parts
        self.costs = start.costs(self.parts)
        self.lower = start.value if known.bound is None else max(start.value, known.bound)
        self.best: Result | None = None if known.values is None else known
        self.upper: int | None = known.objective
        self.listed = [choices(self.parts, deployment, generation.known(deployment)) for deployment in range(len(generation.columns))]
        self.reach = [-1] * len(self.listed)
        self.too_far: list[int | None] = [None] * len(self.listed)
        self.work = 0
        self.clock = Clock.of(limits.seconds)

    def run(self) -> Result:
        """Widen the lists until the plan is proved, a limit is met, or wider lists cannot be had."""
        slack = max(self.generation.unit, int(abs(self.start.value) * FIRST_SLACK))
        if self.report is not None:
            self.report(None, float(self.lower))
        decided, missed, before = 0, slack, 0
        misses = 0
        for _ in range(ROUNDS):
            # The bound alone may prove what is known already.
            if self._late() or (self.upper is not None and self.lower >= self.upper):
                break
            listed, reach = self._list(slack)
            long = sum(map(len, listed))
            # Lists that have not grown hold no plan that was not found in them before.
            found = Result(Status.INFEASIBLE) if long == before and misses == 0 else self._combine(listed)
            if self._done(found, reach) or self.work > self.far.work:
                break
            if found is not None and found.closed and reach >= slack:
                decided, wider = slack, int(slack * (WIDER if long > GROWN * before else WIDER**2)) + 1
                slack = wider if misses == 0 else min(wider, isqrt(slack * missed))
                before = long
            else:
                misses, missed = misses + 1, slack
                slack = isqrt(max(decided, 1) * missed)
            if self.upper is not None:
                slack = min(slack, max(self.upper - self.start.value, 1))
            if misses > self.far.misses or slack == decided or (misses and missed < GROWN * decided):
                break
        return self._result()

    def _list(self, slack: int) -> tuple[list[Choices], int]:
        """Choices of every deployment within `slack` of its own least and those of the column generation; and how far all lists are complete."""
        for deployment, costs in enumerate(self.costs):
            tried = self.too_far[deployment]
            if slack == self.reach[deployment] or (tried is not None and slack >= tried):
                continue
            knapsack = self.parts.knapsacks[deployment]
            if not isinstance(knapsack, Knapsack):
                # What the prices brought up is all that is listed.
                self.listed[deployment] = choices(self.parts, deployment, self.generation.known(deployment))
                continue
            found = near(knapsack, costs, self.start.least[deployment] + slack * self.start.scale, self.far.listed, self.far.partial)
            if found is None:
                # The list that reaches less far stays: it is complete as far as it goes.
                self.too_far[deployment] = slack
                continue
            self.listed[deployment] = choices(self.parts, deployment, np.concatenate((self.generation.known(deployment), found)))
            self.reach[deployment] = slack
            self.work += len(found)
        return self.listed, min(self.reach)

    def _combine(self, listed: list[Choices]) -> Result | None:
        """Best combination of the listed choices; None when too many of them matter."""
        live = live_rows(self.parts, listed)
        joinable = self.upper is not None and not len(self.parts.others)
        shared = self.far.shared * len(listed)
        most = self.far.combined if joinable else min(shared, self.far.combined)
        # Thinning a long list may take longer than joining it.
        for length in (self.far.thinned, None) if self.far.thinned else (None,):
            thinned = self._thinned(listed, live, most if length is None else length * len(listed), length)
            if thinned is not None and joinable and (found := self._join(thinned, live)) is not None:
                return found
        if thinned is None or sum(map(len, thinned)) > shared:
            return None
        # A gap asked for is measured against the bound of all plans, not that of the lists.
        nearly = len(self.parts.others) and self.upper is not None and self.upper - self.lower <= NEAR * abs(self.upper)
        effort = self.limits.effort * (NEAR_PART if nearly else 1.0)
        limits = replace(self.limits, effort=effort, seconds=self.clock.left, gap=0.0)
        return combine(self.parts, thinned, live, self.lower, None if self.upper is None else self.upper - 1, limits)

    def _thinned(self, listed: list[Choices], live: BoolArray, most: int, length: int | None = None) -> list[Choices] | None:
        """Thin the lists of up to a length; None when more than `most` choices of them stay."""
        found: list[Choices] = []
        for mine in listed:
            thin: Choices | None = mine
            if length is None or len(mine) <= length:
                thin = undominated(mine, live, most)
                if thin is None:
                    return None
                most -= len(thin)
            assert thin is not None
            found.append(thin)
        return found

    def _join(self, listed: list[Choices], live: BoolArray) -> Result | None:
        return None if self.upper is None else join(self.parts, listed, live, self.start, self.upper)

    def _done(self, found: Result | None, reach: int) -> bool:
        """Learn from a combination; whether nothing is left to do, or the plan breaks a row that the parts leave out, where more of them would not help."""
        if found is None:
            return False
        scale, unit = self.start.scale, self.generation.unit
        # The least value of the objective above everything that the lists decide.
        beyond = ((self.start.exact + reach * scale) // (scale * unit) + 1) * unit
        proved = self.upper if found.status is Status.INFEASIBLE else found.bound
        if found.status is Status.INFEASIBLE or proved is not None:
            self.lower = max(self.lower, beyond if proved is None else min(beyond, proved))
        if found.values is not None:
            shapes = len(self.parts.cost)
            values = self.parts.values(len(self.model.program.lower), found.values[:shapes], found.values[shapes:])
            if self.model.program.violated(values):
                completed = None if self.complete is None else self.complete(values[: len(self.model.count)])
                if completed is None:
                    return True
                values = completed
                if self.upper is not None and evaluate(self.objective, values) >= self.upper:
                    return True
            self.upper = evaluate(self.objective, values)
            self.best = Result(Status.FEASIBLE, values, self.upper, self.lower, "effort")
        if self.report is not None:
            self.report(self.upper, float(self.lower))
        if self.upper is None:
            return self.lower > self.generation.ceiling or self._late()
        return self.lower >= self.upper or self._near_enough() or self._late()

    def _near_enough(self) -> bool:
        """Whether the gap asked for is reached."""
        return self.upper is not None and self.limits.gap > 0.0 and self.upper - self.lower <= self.limits.gap * abs(self.upper)

    def _late(self) -> bool:
        return interrupts.asked() or self.clock.up

    def _result(self) -> Result:
        stopped_by = "gap" if self._near_enough() else "time" if self._late() else "effort"
        if self.best is None or self.upper is None:
            impossible = self.lower > self.generation.ceiling
            return Result(Status.INFEASIBLE) if impossible else Result(Status.UNKNOWN, bound=self.lower, stopped_by=stopped_by)
        if self.lower >= self.upper:
            return Result(Status.OPTIMAL, self.best.values, self.upper, self.upper)
        return replace(self.best, bound=self.lower, stopped_by=stopped_by)

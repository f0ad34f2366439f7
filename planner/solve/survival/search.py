"""Bound, counts and places of a plan that survives the loss of any one failure domain.

Counts come first: column generation over deployments bounds the cost, and CP-SAT picks one listed choice per deployment. With the counts fixed, what all replicas of
a deployment serve is known, hence how much of it one domain may hold, and places are found pool by pool. A pool that fails gets slack, and the counts are picked
again. Every step ends on its own work limit, so the same question gives the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner import interrupts
from planner.plan.outcome import Status
from planner.solve import cpsat, highs
from planner.solve.clock import Clock
from planner.solve.decomposition.columns import Bound, Generation
from planner.solve.decomposition.combining import Choices, choices, live_rows, program_of
from planner.solve.decomposition.proof import MANY
from planner.solve.decomposition.split import Parts, objective_unit
from planner.solve.instance import Instance, IntArray
from planner.solve.result import Result
from planner.solve.survival.carry import forced
from planner.solve.survival.confirm import confirmed
from planner.solve.survival.fitting import choose_and_place, refit
from planner.solve.survival.freely import place_freely
from planner.solve.survival.knapsack import SurvivingKnapsack
from planner.solve.survival.padding import padded, roomy
from planner.solve.survival.places import Places, Room, greedy
from planner.solve.survival.question import PoolBins, Question, ask, ceiling
from planner.solve.survival.rows import parts_of
from planner.solve.survival.seats import scopes_hold

STEADY = 1e-4
"""Relative distance of the master from the bound at which column generation ends: places lose more than is left."""

LEVELS = ((1e-3, 150), (4e-3, 200), (1.2e-2, 300))
"""How far the lists reach above a deployment's least, as a share of the bound, and how many choices each holds."""

STEPS = 14
"""Most times that counts are picked and placed."""

CLOSE = 4e-3
"""Relative gap above which counts and places are chosen together as well."""

APART = 2e-2
"""Relative gap above which they are chosen without the lists too."""

TOGETHER_BINS = 40
"""Most bins of all pools for which that is tried: with more it takes long and finds nothing."""

FEW_PADDED, PADDED = 20, 60
"""Choices of a deployment that are listed with replicas to spare as well where no plan is found without."""

PICK_GAP = 3e-4
"""Relative gap at which picking counts may end."""

PICK_SHARE, FIT_SHARE, TOGETHER_SHARE = 0.5, 0.25, 1.0
"""Shares of the effort of one picking, of placing one pool (or all of them without lists), and of both together."""


@dataclass(frozen=True)
class Survival:
    """Status, counts, cost and bound as `result`, and the places of the replicas (None without a plan)."""

    question: Question
    result: Result
    places: Places | None = None


def survive(instance: Instance, limits: cpsat.Limits) -> Survival:
    """Find a plan of an instance that is `covered`, with a proved bound of its cost."""
    question = ask(instance)
    parts = parts_of(question)
    generation = Generation(parts, objective_unit(parts), steady=STEADY)
    generation.ceiling = min(generation.ceiling, ceiling(question))
    bound = generation.run()
    if generation.impossible:
        agreed = confirmed(parts, generation, limits)
        return Survival(question, Result(Status.INFEASIBLE) if agreed else Result(Status.UNKNOWN, stopped_by="effort"))
    if bound is None:
        return Survival(question, Result(Status.UNKNOWN, stopped_by="effort"))
    return _Search(question, parts, generation, bound, limits).run()


def _alone(bins: PoolBins, kind: str) -> bool:
    """Whether every domain of a kind is one scope of the pool."""
    return kind not in bins.domains or len(np.unique(bins.domains[kind])) == len(bins.scopes)


class _Search:
    """Lists of choices, the slack that failures have asked for, and the best plan of one search."""

    def __init__(self, question: Question, parts: Parts, generation: Generation, start: Bound, limits: cpsat.Limits) -> None:
        self.question, self.parts, self.start, self.limits = question, parts, start, limits
        self.room = Room(question)
        self.costs = start.costs(parts)
        self.known = [generation.known(deployment) for deployment in range(len(generation.columns))]
        deployments = len(parts.shapes)
        self.level = [-1] * deployments
        self.listed = [choices(parts, deployment, self.known[deployment]) for deployment in range(deployments)]
        self.spread = [0.0] * deployments
        self.cut = dict.fromkeys(question.bins, 0.0)
        self.row_pool = [int(question.instance.shapes.pool[int(np.flatnonzero(line)[0])]) if line.any() else -1 for line in parts.use]
        columns = question.instance.shapes
        # A row over several pools is a budget: it is never cut.
        for row, line in enumerate(parts.use):
            if len(np.unique(columns.pool[line > 0])) > 1:
                self.row_pool[row] = -1
        # Domains of one scope have room for few replicas each: with many deployments what one more lets them hold matters from the start.
        alone = all(kind in {"", "gpu"} or _alone(bins, kind) for bins in question.bins.values() for kind in question.kinds)
        self.scattered = alone and deployments >= MANY
        self.padded = False
        self.per_domain: dict[int, int] = {}
        self.best: tuple[int, IntArray, Places] | None = None
        self.first: tuple[IntArray, Places] | None = None
        self.clock = Clock.of(limits.seconds)

    @property
    def late(self) -> bool:
        """Whether the time is up, or Ctrl-C came."""
        return interrupts.asked() or self.clock.up

    def run(self) -> Survival:
        """Pick and place until it works, then both together where the gap is wide."""
        self._widen_all()
        self._steps(1 if self.scattered else STEPS)
        if self.scattered and self.best is None and not self.late:
            self._pad(FEW_PADDED)
            self._steps(STEPS)
        if self.best is None and not self.late:
            self._pad(PADDED)
            self._steps(STEPS)
        few = sum(map(len, self.question.bins.values())) <= TOGETHER_BINS
        if few and not self.late and not self._within(CLOSE):
            self._together()
        if few and not self.late and not self._within(APART):
            self._freely()
        return self._result()

    def _within(self, share: float) -> bool:
        """Whether the best plan is that close to the bound."""
        return self.best is not None and self.best[0] - self.start.value <= share * self.best[0]

    def _steps(self, most: int) -> None:
        for step in range(most):
            if self.late or not self._step(step):
                break

    def _widen_all(self) -> None:
        for deployment in range(len(self.listed)):
            self._widen(deployment)

    def _pad(self, most: int) -> None:
        """List choices with replicas to spare as well."""
        for deployment, mine in enumerate(self.listed):
            if self.question.rest[deployment] and len(mine):
                self.listed[deployment] = padded(self.parts, deployment, self._knapsack(deployment), mine, most)
                self.level[deployment] = len(LEVELS)
        self.cut = dict.fromkeys(self.cut, 0.0)
        self.spread = [0.0] * len(self.spread)
        self.per_domain = {}
        self.padded = True

    def _result(self) -> Survival:
        bound = self.start.value
        stopped_by = "time" if self.late else "effort"
        if self.best is None:
            return Survival(self.question, Result(Status.UNKNOWN, bound=bound, stopped_by=stopped_by))
        value, counts, places = self.best
        values = tuple(counts.tolist())
        if bound >= value:
            return Survival(self.question, Result(Status.OPTIMAL, values, value, value), places)
        return Survival(self.question, Result(Status.FEASIBLE, values, value, bound, stopped_by), places)

    def _knapsack(self, deployment: int) -> SurvivingKnapsack:
        knapsack = self.parts.knapsacks[deployment]
        assert isinstance(knapsack, SurvivingKnapsack)
        return knapsack

    def _widen(self, deployment: int) -> None:
        """List choices farther above the least."""
        if self.level[deployment] + 1 >= len(LEVELS):
            return
        self.level[deployment] += 1
        share, most = LEVELS[self.level[deployment]]
        threshold = self.start.least[deployment] + int(share * self.start.exact)
        found = self._knapsack(deployment).near(self.costs[deployment], threshold, most)
        everything = np.concatenate((self.listed[deployment].counts, found))
        _, first = np.unique(everything, axis=0, return_index=True)
        self.listed[deployment] = choices(self.parts, deployment, everything[np.sort(first)])

    def _view(self) -> list[Choices]:
        """Listed choices that may be split over the domains with the slack asked for; with less slack where none is left."""
        found = []
        for deployment, parts_of_it in enumerate(self.parts.shapes):
            least = int(self.question.instance.shapes.capacity[parts_of_it].min())
            spare = int(self.spread[deployment] * least)
            kept = self._fitting(deployment, spare)
            while len(kept) < 3 and self.level[deployment] + 1 < len(LEVELS):
                self._widen(deployment)
                kept = self._fitting(deployment, spare)
            found.append(kept if len(kept) or not spare else self._fitting(deployment, 0))
        return found

    def _fitting(self, deployment: int, spare: int) -> Choices:
        mine, knapsack = self.listed[deployment], self._knapsack(deployment)
        if not knapsack.rest:
            return mine
        if self.padded:
            mine = roomy(self.room, self.parts, deployment, mine, self.per_domain)
        return mine.take(np.array([knapsack.fits(counts, spare) for counts in mine.counts.tolist()], dtype=bool))

    def _step(self, step: int) -> bool:
        """Pick counts and place them; whether another step may help."""
        view = self._view()
        if not all(map(len, view)):
            return False
        picked = self._pick(view, step)
        if picked is None:
            if step or self.scattered:
                return False
            self._widen_all()
            return True
        value, counts = picked
        places, failed = self.place(counts)
        if self.first is None:
            self.first = (counts, places)
        if not failed:
            self.best = (value, counts, places)
            return False
        self._loosen(step, counts, failed, places)
        return True

    def _loosen(self, step: int, counts: IntArray, failed: list[int], places: Places) -> None:
        """Ask for slack where places were not found: room of the pool and spread of its deployments in turn; of padded lists, one more replica a domain."""
        columns = self.question.instance.shapes
        if self.padded:
            caps = self.room.caps(counts)
            for shape in places.missing:
                if self.room.pool[shape] in failed and self.room.domain(shape) is not None:
                    self.per_domain[shape] = caps[self.room.deployment[shape]] // self.room.capacity[shape] + 1
            for pool in failed:
                if step % 2:
                    self.cut[pool] += 0.01
            return
        for pool in failed:
            if step % 2 == 0:
                self.cut[pool] += 0.01 * (1 + step // 4)
            else:
                for deployment in np.unique(columns.deployment[(columns.pool == pool) & (counts > 0)]).tolist():
                    self.spread[deployment] += 0.25 * (1 + step // 3)

    def place(self, counts: IntArray) -> tuple[Places, list[int]]:
        """Places of counts, and the pools in which they are not complete."""
        places = greedy(self.room, counts)
        failed = []
        for pool in sorted({self.room.pool[shape] for shape in places.missing}):
            again = refit(self.room, counts, places, pool, self._limits(FIT_SHARE))
            if again is None:
                failed.append(pool)
            else:
                places = again
        failed += [pool for pool in self.question.bins if pool not in failed and not scopes_hold(self.room, places, pool)]
        return places, failed

    def _limits(self, share: float, gap: float = 0.0) -> cpsat.Limits:
        return replace(self.limits, effort=self.limits.effort * share, seconds=self.clock.left, gap=gap)

    def _pick(self, view: list[Choices], step: int) -> tuple[int, IntArray] | None:
        """Pick one choice per deployment under the rows, and what choices force onto the tightest bins."""
        burdens = [forced(self.room, self.parts, deployment, mine) for deployment, mine in enumerate(view)]
        room = [
            limit if pool < 0 else int(limit * (1 - self.cut[pool]) + 1e-9)
            for limit, pool in zip(self.parts.room.tolist(), self.row_pool, strict=True)
        ]
        parts = replace(
            self.parts,
            room=np.concatenate((np.array(room, dtype=np.int64), burdens[0][1])),
            others_use=np.zeros((len(room) + len(burdens[0][1]), 0), dtype=np.int64),
        )
        listed = [
            Choices(mine.counts, mine.cost, np.concatenate((mine.use, use), axis=1)) for mine, (use, _) in zip(view, burdens, strict=True)
        ]
        asked = program_of(parts, listed, live_rows(parts, listed), self.start.value, None)
        limits = replace(self._limits(PICK_SHARE, PICK_GAP), seed=self.limits.seed + step)
        found = cpsat.minimise(asked.program, asked.cost, limits)
        if found.values is None and found.status is Status.UNKNOWN and highs.available():
            found = highs.minimise(asked.program, asked.cost, nodes=200, seconds=limits.seconds, seed=limits.seed)
        read = asked.read(parts, listed, found)
        if read.values is None or read.objective is None:
            return None
        return read.objective, np.array(read.values, dtype=np.int64)

    def _together(self) -> None:
        """Choose counts and places at once, from the best plan so far; what single domains lacked says nothing then."""
        self.per_domain = {}
        view = [self._fitting(deployment, 0) for deployment in range(len(self.listed))]
        if not all(map(len, view)):
            return
        hint = self.first if self.best is None else self.best[1:]
        most = None if self.best is None else self.best[0] - 1
        found = choose_and_place(self.room, self.parts, view, self.start.value, most, self._limits(TOGETHER_SHARE, 0.75 * CLOSE), hint)
        if found is not None:
            result, counts, places = found
            assert result.objective is not None
            if all(scopes_hold(self.room, places, pool) for pool in self.question.bins):
                self.best = (result.objective, counts, places)

    def _freely(self) -> None:
        """Choose counts and places at once without the lists, from the best plan so far."""
        hint = self.first if self.best is None else self.best[1:]
        most = None if self.best is None else self.best[0] - 1
        found = place_freely(self.room, self.start.value, most, self._limits(FIT_SHARE, CLOSE), hint)
        if found is not None and all(scopes_hold(self.room, found[2], pool) for pool in self.question.bins):
            self.best = found

"""Plans whose replicas keep apart, on fleets too large to count every place: replicas first, places after.

1. The question without places is solved as any other, with limits on the replicas that can keep apart at all (`numbers`), again and again with limits that its answer breaks
   (`limits`). Its bound holds for the question as asked.
2. Its replicas are placed apart (`places`). Where that works the plan is as good as the bound says: proved where the other question is.
3. Where it fails, the program that counts places looks at those replicas alone. It has a variable for each of few shapes in each domain.
4. Where that fails too, or is too large, replicas that found no place are ruled out, or the room of their pool is cut, and the replicas are chosen again. That bounds nothing, so the
   first bound stays.
5. The program that counts places then chooses replicas by itself: of all shapes where it is small, which decides the question, else of those seen so far and some more.
6. Greedy choice and placement together is the last resort; where even that finds nothing, small questions go to the program that counts places with everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from planner import interrupts
from planner.plan.outcome import Status
from planner.solve import cpsat
from planner.solve.clock import Clock
from planner.solve.dominance import worth_keeping
from planner.solve.instance import Instance, IntArray
from planner.solve.model import Model, Rule
from planner.solve.options import SolveOptions
from planner.solve.placement import PoolPlacement
from planner.solve.program import evaluate
from planner.solve.search import Decision, Search, Stage
from planner.solve.seating import Placed
from planner.solve.spreading.choosing import chosen_greedily
from planner.solve.spreading.cuts import Cut, cut_of, steps_away
from planner.solve.spreading.decisions import at_best, bounded_by, opened, seated, settled, valued
from planner.solve.spreading.limits import Limits
from planner.solve.spreading.places import Places, all_free, placeable, places_of
from planner.solve.spreading.question import bounded_at_once, without_spread
from planner.solve.stages import expression
from planner.solve.surviving import places_counted

WHOLE = 2_000
"""Most places of the program over all shapes that decides what the first bound leaves open."""

EXACT = 40_000
"""Most places of the program that looks for those of given replicas, or chooses among few shapes."""

LIMITS = 12
"""Most times that replicas are chosen again with limits that every plan keeps."""

ROUNDS = 5
"""Most times that they are chosen again with limits that only rule out what failed."""

AGAIN_SHARE, LATER_SHARE, SOON = 0.3, 0.1, 4
"""Shares of the effort of choosing again, the first times and later, and how many times are the first."""

CLOSE = 3e-3
"""Relative gap that is good enough where places had to be looked for."""

CHOICES = (12, 6, 3, 1)
"""Cheapest shapes of every deployment and pool that are looked at besides those seen, as many as the program has room for."""

EXACT_SHARE = 0.25
"""Share of the effort of placing given replicas."""


class Decide(Protocol):
    """Answer a question; with `counted` by the program that counts every place."""

    def __call__(self, instance: Instance, options: SolveOptions, rules: Sequence[Rule], *, counted: bool = False) -> Decision:
        """Give the decision."""


def decide_apart(instance: Instance, options: SolveOptions, rules: Sequence[Rule], decide: Decide) -> Decision:
    """Choose and place the replicas of an instance that is `far_apart`; `decide` answers questions without spreads."""
    return _Spreading(instance, options, rules, decide).run()


class _Spreading:
    """One search: the first bound, the cuts made so far and the shapes seen."""

    def __init__(self, instance: Instance, options: SolveOptions, rules: Sequence[Rule], decide: Decide) -> None:
        self.instance, self.options, self.rules, self.decide = instance, options, tuple(rules), decide
        self.minded = set(bounded_at_once(instance))
        self.kept = instance.keep(worth_keeping(instance))
        self.limits = Limits(self.kept)
        self.clock = Clock.of(options.time_limit)
        self.may_miss = any(rule.may_go_unserved for rule in instance.rules)
        self.cuts: list[Cut] = []
        self.seen: set[int] = set()
        self.turn = 0

    @property
    def late(self) -> bool:
        """Whether the time is up, or Ctrl-C came."""
        return interrupts.asked() or self.clock.up

    def left(self) -> SolveOptions:
        """Give the options with what is left of the time."""
        return replace(self.options, time_limit=self.clock.left)

    def run(self) -> Decision:
        """Find the best plan that one step after another gives."""
        found = self._found()
        if found.model is None and found.status is Status.UNKNOWN and not self.late and places_counted(self.kept) <= WHOLE:
            return self.decide(self.instance, self.left(), self.rules, counted=True)
        return found

    def _found(self) -> Decision:
        """Go through the steps."""
        first = self._bounded()
        if first.model is None:
            return first if first.status is Status.INFEASIBLE else self._last_resort(first)
        best, places = self._placed(first)
        if best is None or not self._close(best):
            best = self._again(first, places, best)
        if not self.late and (best is None or not self._close(best)):
            best = self._together(first, best)
        return best or self._last_resort(first)

    def _close(self, decision: Decision) -> bool:
        """Whether looking on is not worth while."""
        value, bound = decision.stages[0].value, decision.stages[0].bound
        return bound is not None and value - bound <= CLOSE * abs(value)

    def _bounded(self) -> Decision:
        """Choose replicas until they break no limit that every plan keeps."""
        known: int | None = None
        last: Decision | None = None
        while True:
            found = self._choose()
            if found.model is None and found.status is Status.UNKNOWN and last is not None:
                return last
            if found.model is not None:
                # A question with more limits has a bound no lower, but did not always find it.
                bound = found.stages[0].bound
                known = bound if known is None or (bound is not None and bound > known) else known
                if not self.may_miss and known != bound:
                    found = settled(replace(found, stages=[replace(found.stages[0], bound=known), *found.stages[1:]]))
            if found.model is None or self.late or len(self.cuts) >= LIMITS * max(1, len(self.limits)):
                return found
            number = {source: shape for shape, source in enumerate(self.kept.source.tolist())}
            counts = [0] * len(self.kept.shapes)
            for source, count in zip(found.model.instance.source.tolist(), found.counts, strict=True):
                counts[number[source]] = count
            limits = list(self.limits.broken(counts, opened(found)))
            broken = [cut_of(self.kept, limit) for limit in limits]
            if not broken:
                return found
            last = found
            self.cuts.extend(broken)
            self.minded.update(*(limit.capped for limit in limits))

    def _choose(self) -> Decision:
        options, rules = self.left(), self.rules
        if self.cuts:
            share = AGAIN_SHARE if self.turn < SOON else LATER_SHARE
            self.turn += 1
            options, rules = replace(options, effort=options.effort * share), (*rules, Rule("spread", self._cut))
        found = self.decide(without_spread(self.instance, self.minded), options, rules)
        if found.model is not None:
            sources = found.model.instance.source.tolist()
            self.seen |= {source for source, count in zip(sources, found.counts, strict=True) if count}
        return found

    def _cut(self, model: Model) -> None:
        """Write the cuts into a model."""
        for cut in self.cuts:
            cut.apply(model)

    def asked(self, model: Model) -> Instance:
        """Give the shapes of a model with the spreads as they are asked for."""
        return replace(model.instance, rules=self.instance.rules)

    def _placed(self, decision: Decision) -> tuple[Decision | None, Places | None]:
        """Place the replicas of a decision apart: scope by scope, else by the program that counts places. Without success, the places that were found."""
        assert decision.model is not None
        asked, places = self.asked(decision.model), None
        if placeable(asked):
            pools = [PoolPlacement(decision.model, pool, decision.values) for pool in decision.model.pools]
            stays = [replica for pool in pools for replica in pool.staying]
            for offered in self._offers(asked, {pool.layout.pool: pool.offered for pool in pools}, stays):
                places = places_of(asked, decision.counts, offered, stays)
                if not places.missing:
                    return replace(decision, placed=seated(decision, places)), None
        return (None if self.late else self._counted(decision)), places

    def _offers(self, instance: Instance, used: dict[int, IntArray], stays: Sequence[Placed]) -> Iterator[dict[int, IntArray]]:
        """GPUs that placement may take: those of the scopes that are used, then, where opening scopes costs nothing, all."""
        yield used
        free = {number: own.copy() for number, own in all_free(instance).items()}
        for replica in stays:
            for group in replica.groups:
                free[int(instance.shapes.pool[replica.shape])][group.scope] -= len(group.positions)
        free = {number: used[number] if instance.pools[number].node_price is not None else own for number, own in free.items()}
        if any((free[number] != used[number]).any() for number in free):
            yield free

    def _counted(self, decision: Decision) -> Decision | None:
        """Place the replicas of a decision by the program that counts places."""
        assert decision.model is not None
        columns, counts = decision.model.instance.shapes, np.array(decision.counts, dtype=np.int64)
        used = counts > 0
        totals = np.bincount(columns.deployment, weights=counts, minlength=self.instance.deployments).astype(np.int64).tolist()
        limits = tuple(
            replace(limit, minimum=total, maximum=total) for limit, total in zip(decision.model.instance.limits, totals, strict=True)
        )
        asked = replace(self.asked(decision.model), limits=limits).keep(used)
        if places_counted(asked) > EXACT:
            return None
        search = Search(asked, self.left(), self.rules)
        search.within = {source: (count, count) for source, count in zip(asked.source.tolist(), counts[used].tolist(), strict=True)}
        model = search.build(asked)
        objective = expression(model, asked.objective) if asked.objective in {"cost", "gpus"} else {}
        found = search.guarded(lambda: cpsat.minimise(model.program, objective, search.limits(EXACT_SHARE)))
        return None if found.values is None else valued(decision, model, found.values)

    def _again(self, first: Decision, places: Places | None, best: Decision | None) -> Decision | None:
        """Choose replicas again with less of what found no place, first a little less and then more, until all find one."""
        last = first
        for step in range(ROUNDS):
            if self.late or places is None or last.model is None:
                return best
            kept = len(self.cuts)
            self.cuts.extend(steps_away(self.instance, self.asked(last.model), last.counts, places, step))
            found = self._choose()
            if found.model is None:
                # Nothing is left with so much less.
                del self.cuts[kept:]
                return best
            last = found
            placed, places = self._placed(last)
            if placed is not None:
                # Where load may go unserved, more of it may do so now: nothing is known of the least.
                placed = bounded_by(placed, None if self.may_miss else first.stages[0].bound)
                if best is not None and placed.stages[0].value >= best.stages[0].value:
                    return best
                best = placed
                if places is None or self._close(best):
                    return best
        return best

    def _together(self, first: Decision, best: Decision | None) -> Decision | None:
        """Choose by the program that counts places: among all shapes where it is small, which decides the question, else among few."""
        if self.instance.objective not in {"cost", "gpus"} or self.may_miss:
            return best
        asked = self.instance.keep(worth_keeping(self.instance, ties=False))
        complete = places_counted(asked) <= WHOLE
        if not complete:
            few = next((kept for number in CHOICES if places_counted(kept := self._few(number)) <= EXACT), None)
            if few is None:
                return best
            asked = few
        search = Search(asked, self.left(), self.rules)
        model = search.build(asked)
        objective = expression(model, asked.objective)
        most = None if best is None else best.stages[0].value - 1
        model.program.add_row("bound", objective, lower=first.stages[0].bound, upper=most)
        found = search.run(asked.objective, model.program, objective, 1.0 if best is None else AGAIN_SHARE)
        if complete and found.status is Status.INFEASIBLE:
            found = search.confirmed(model, objective)
            if found.status is Status.INFEASIBLE:
                # What is known is as cheap as any, or there is none.
                return Decision(Status.INFEASIBLE) if best is None else at_best(best)
        if found.values is None or found.objective is None:
            return best
        bound = found.bound if complete else first.stages[0].bound
        stages = [Stage(asked.objective, found.objective, bound)]
        return settled(Decision(Status.FEASIBLE, model, found.values, stages, search.reason("effort"), interrupts.asked()))

    def _few(self, number: int) -> Instance:
        """Shapes seen so far and the cheapest of every deployment on every pool."""
        columns = self.instance.shapes
        kept = worth_keeping(self.instance, ties=False)
        weight = columns.price if self.instance.objective == "cost" else columns.gpus
        each = weight / np.maximum(columns.capacity, 1)
        order = np.lexsort((np.arange(len(columns)), each, columns.pool, columns.deployment))
        order = order[kept[order]]
        first = np.ones(len(order), dtype=np.bool_)
        same = (columns.pool[order][1:] == columns.pool[order][:-1]) & (columns.deployment[order][1:] == columns.deployment[order][:-1])
        first[1:] = ~same
        rank = np.arange(len(order)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        cheapest = np.zeros(len(columns), dtype=np.bool_)
        cheapest[order[rank < number]] = True
        return self.instance.keep(cheapest | np.isin(self.instance.source, sorted(self.seen)))

    def _last_resort(self, first: Decision) -> Decision:
        """Greedy choice and placement together; without a plan, say what ended the search."""
        late = "interrupt" if interrupts.asked() else "time" if self.late else None
        nothing = Decision(Status.UNKNOWN, stopped_by=late or first.stopped_by or "effort", interrupted=interrupts.asked())
        asked = self.instance.keep(worth_keeping(self.instance, ties=False))
        kept = without_spread(asked, self.minded)
        if self.instance.objective not in {"cost", "gpus"} or not placeable(asked) or self.instance.slicing or self.may_miss:
            return nothing
        found = chosen_greedily(asked)
        if found is None:
            return nothing
        counts, places = found
        search = Search(kept, replace(self.options, time_limit=None), self.rules)
        model = search.build(kept)
        values = search.complete(model, counts)
        if values is None:
            return nothing
        bound = first.stages[0].bound if first.stages else None
        stages = [Stage(kept.objective, evaluate(expression(model, kept.objective), values), bound)]
        decision = Decision(Status.FEASIBLE, model, values, stages, nothing.stopped_by, nothing.interrupted)
        if all(pool.node_price is None for pool in kept.pools):
            return settled(replace(decision, placed=seated(decision, places)))
        placed, _ = self._placed(decision)
        return nothing if placed is None else settled(placed)

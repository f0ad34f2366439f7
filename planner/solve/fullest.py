"""The greatest share of all loads by how full the room is: what is out of reach by prices of the room, plans from the few counts that these leave.

A share is ruled out where the room that it needs, at some prices, is more than there is. Where it is not, what is left of the priced room bounds what all deployments
together may waste of it. Plans are sought where each wastes a small part of that: so few counts are left there that CP-SAT finds one in moments, near the
greatest share too, where among all counts it finds none in many seconds.
"""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.solve.decomposition.fitting import Fit, fit
from planner.solve.dominance import worth_keeping
from planner.solve.result import Result
from planner.solve.search import ANY, Search
from planner.solve.shares import Served, at_share, served
from planner.solve.stages import expression

EDGE_ROUNDS = 12
"""Most shares at which the prices are asked whether they rule them out, before plans are sought."""

CLOSE = 0.02
"""Relative distance of shares up to which the prices at one are a start for those at another."""

EDGE = 2e-4
"""Relative distance at which the last share that prices rule out and the first that they do not are near enough."""

PARTS = (16, 8, 4)
"""What is left of the room, divided by these, is what each deployment may waste where a plan is sought, one after another."""

FEW = 110
"""Shapes with more than one count left, at most, with which all plans that there may be are asked about."""

STEP_SHARE = 0.01
"""Share of the effort of each question."""

ALL_SHARE = 0.06
"""Share of the effort of all questions together, beyond which no other is asked."""

NEAR = 2e-4
"""Relative distance between the share of a plan and one that was not reached at which no plan between them is sought."""

SHARES = 40
"""Most shares at which plans are sought."""


def fullest(search: Search, most: int) -> Served | None:
    """Find the greatest share [1e-6], at most `most`; None where deployments do not fall apart or no plan was found."""
    found = _Fullest(search, most)
    return found.run() if found.edge() else None


class _Fullest:
    """The search between `best`, the plan of the greatest share so far, and `bound`, the greatest share that is not ruled out."""

    def __init__(self, search: Search, most: int) -> None:
        self.search, self.bound, self.start = search, most, 0
        self.best: Served | None = None
        self.work = 0.0
        self.fits: dict[int, Fit | None] = {}

    def fit(self, share: int) -> Fit | None:
        """Prices of the room at a share, kept once computed; they rule it out or not."""
        if share not in self.fits:
            question = at_share(self.search.instance, share)
            model = self.search.build(question.keep(worth_keeping(question, ties=False)))
            # Prices at a share near by are a good start.
            nearest = min(
                (other for other, found in self.fits.items() if found is not None), key=lambda other: abs(other - share), default=0
            )
            near = nearest and abs(nearest - share) <= CLOSE * share
            self.fits[share] = fit(model, self.fits[nearest] if near else None)
        return self.fits[share]

    def edge(self) -> bool:
        """Find about where prices rule no share out any more, `start`; whether there is such a share."""
        share = self.bound
        for _ in range(EDGE_ROUNDS):
            found = None if self.search.over else self.fit(share)
            if found is None:
                return False
            if found.impossible:
                self.bound = share - 1
            else:
                self.start = share
            if self.bound - self.start <= EDGE * self.bound:
                break
            # The room needed grows about as the share, so that this is near the edge.
            guess = share / (1 + found.over)
            share = round(guess * (1 - EDGE) if found.impossible else guess * (1 + EDGE))
            if not self.start < share <= self.bound:
                share = (self.start + self.bound + 1) // 2
        return self.start > 0

    def run(self) -> Served | None:
        """Go down from the edge to the first plan, then halve between plans and what was not reached, then between that and what is ruled out."""
        share, step, missed = self.start, NEAR, self.bound + 1
        for _ in range(SHARES):
            if self.search.over or (
                self.best is not None and (self.best.share >= self.bound or self.work > ALL_SHARE * self.search.options.effort)
            ):
                break
            reached = self.ask(share)
            if reached is False:
                self.bound, missed = min(self.bound, share - 1), min(missed, share)
            elif reached is None:
                missed = min(missed, share)
            if self.best is None:
                share, step = round(share * (1 - step)), 2 * step
                if share < 1:
                    break
                continue
            ends = min(self.bound, missed - 1)
            if ends - self.best.share > NEAR * ends:
                share = (self.best.share + ends + 1) // 2
            elif self.bound - self.best.share <= NEAR * ends and missed != self.best.share + 1:
                # So close, the next share tells whether there is a better plan at all.
                share = self.best.share + 1
            else:
                break
        return None if self.best is None else Served(self.best.share, self.bound, self.best.counts)

    def ask(self, share: int) -> bool | None:
        """Whether a plan serves a share; None where that was not found out."""
        found = self.fit(share)
        if found is None or found.impossible:
            return None if found is None else False
        for part in (*PARTS, 1):
            narrow = found.ranges(part)
            if part == 1 and int((narrow.high > narrow.low).sum()) > FEW:
                return None
            program = found.model.program.within(found.model.count, narrow.low.tolist(), narrow.high.tolist())
            # Few GPUs lead the way to a plan; the first one will do.
            result = self.search.run("throughput", program, expression(found.model, "gpus"), STEP_SHARE, gap=ANY)
            self.work += result.work
            if result.values is not None:
                self.keep(found, result)
                return True
            if part == 1 and result.status is Status.INFEASIBLE:
                return False
        return None

    def keep(self, found: Fit, result: Result) -> None:
        """Keep a plan where it serves more than the best."""
        assert result.values is not None
        plan = served(self.search.instance, found.model, result.values, self.bound)
        if self.best is None or plan.share > self.best.share:
            self.best = plan

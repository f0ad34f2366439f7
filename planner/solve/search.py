"""The stages of one solve: the objective asked for, then what breaks its ties, each with the earlier values fixed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner import interrupts
from planner.plan.outcome import Status
from planner.solve import confirm, cpsat, highs
from planner.solve.decomposition.proof import decompose
from planner.solve.greedy import greedy
from planner.solve.instance import Instance
from planner.solve.model import Model, Rule, build
from planner.solve.options import Progress, SolveOptions
from planner.solve.placement import Placed
from planner.solve.program import Program, Terms, evaluate
from planner.solve.result import Result, better
from planner.solve.rules.priority import levels
from planner.solve.scaling import STAGE_UNITS
from planner.solve.stages import expression, running_start, stages_after

FIRST_SHARE = 0.05
"""Share of the effort of the first, short run."""

MANY = 8
"""Deployments from which taking them apart comes first; few are decided faster as a whole."""

DECOMPOSITION_SHARE = 0.25
"""Share of the effort of each combination of deployments' choices."""

NEAR = 2e-4
"""Relative gap below which the long run is left out where deployments are many: the program as a whole tells nothing more there."""

SECONDARY_SHARE = {
    "cost": 0.05,
    "gpus": 0.05,
    "moves": 0.05,
    "token_time": 0.008,
    "communication": 0.008,
    "whole_scopes": 0.005,
    "order": 0.002,
}
"""Share of the effort that each tie-breaking stage gets."""

NOTHING = Result(Status.UNKNOWN)
"""What a method tells that has nothing to say about a program."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One finished stage in integer units: `name`, value and proved bound."""

    name: str
    value: int
    bound: int | None


@dataclass
class Decision:
    """What the stages found: the model whose variables `values` are, the stages in order, and what stopped an unfinished one.

    `placed` holds the replicas where they were placed together with the choice of counts, else it is None. `interrupted` tells that Ctrl-C came, be it after the objective was proved, while ties were broken.
    """

    status: Status
    model: Model | None = None
    values: tuple[int, ...] = ()
    stages: list[Stage] = field(default_factory=list)
    stopped_by: str | None = None
    interrupted: bool = False
    placed: tuple[Placed, ...] | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        """Replicas of every shape of the instance."""
        return () if self.model is None else tuple(self.values[variable] for variable in self.model.count)


class Search:
    """One solve of one instance under given rules."""

    def __init__(self, instance: Instance, options: SolveOptions, rules: Sequence[Rule]) -> None:
        self.instance, self.options, self.rules = instance, options, tuple(rules)
        self._ends = None if options.time_limit is None else time.monotonic() + options.time_limit
        self.interrupted = False
        self.promised: list[int] = []

    def build(self, instance: Instance, keep_whole: bool = False) -> Model:
        """Build the program of an instance, with what goes unserved at every level of importance fixed as far as it is decided."""
        model = build(instance, self.rules, keep_whole)
        for terms, value in zip(levels(model), self.promised, strict=False):
            model.program.add_row("fixed", terms, upper=value)
        return model

    def limits(self, share: float = 1.0) -> cpsat.Limits:
        """Limits of one run: its share of the effort, and what is left of the time."""
        seconds = None if self._ends is None else max(0.0, self._ends - time.monotonic())
        gap = self.options.gap if share in {1.0, FIRST_SHARE} else 0.0
        return cpsat.Limits(self.options.effort * share, seconds, gap, self.options.seed, self.options.log)

    @property
    def over(self) -> bool:
        """Whether the time is up or the user has interrupted."""
        self.interrupted = self.interrupted or interrupts.asked()
        return self.interrupted or (self._ends is not None and time.monotonic() >= self._ends)

    def run(self, name: str, program: Program, objective: Terms, share: float, hint: Mapping[int, int] | None = None) -> Result:
        """Minimise with CP-SAT, telling progress; nothing once the search is over."""
        if self.over:
            return Result(Status.UNKNOWN, stopped_by=self.reason("effort"))
        limits = self.limits(share)
        result = self.guarded(lambda: cpsat.minimise(program, objective, limits, hint, self.report(name)))
        self.interrupted = self.interrupted or result.stopped_by == "interrupt"
        return result

    def report(self, name: str) -> cpsat.Report | None:
        """Who is told of every new plan and bound of a stage, in the user's units; None where nobody listens."""
        progress = self.options.progress
        if progress is None:
            return None
        scale, unit = STAGE_UNITS[name]
        known: list[float | None] = [None, None]
        progress(Progress(name, None, None, unit))

        def told(incumbent: float | None, bound: float | None) -> None:
            for place, value in enumerate((incumbent, bound)):
                if value is not None:
                    known[place] = value / scale
            progress(Progress(name, known[0], known[1], unit))

        return told

    def guarded(self, step: Callable[[], Result]) -> Result:
        """Run one step; Ctrl-C ends it without a result instead of ending the program, and no other step follows."""
        try:
            return step()
        except KeyboardInterrupt:
            if interrupts.asked():
                # The second one in a row: whoever presses it wants no answer.
                raise
            self.interrupted = True
            return Result(Status.UNKNOWN, stopped_by="interrupt")

    def primary(self, name: str, model: Model, objective: Terms, known: Result = NOTHING) -> Result:
        """Minimise the objective asked for, with one method after another until one proves its answer; start from what is `known`.

        A short run of CP-SAT decides small questions. Then deployments are taken apart, which proves most large ones; what is left goes to
        CP-SAT in full, started from the best plan so far, and to HiGHS where it is installed. The best plan and the best bound win; the
        greedy plan answers when nothing else does.
        """
        many = self.instance.deployments >= MANY
        if model.instance.seats and (running := self._start(model)) is not None:
            # What runs already is the best place to start from.
            known = better(known, Result(Status.FEASIBLE, running, evaluate(objective, running), None, "effort"))
        result = self._apart(name, model, objective) if many else NOTHING
        if result == NOTHING:
            program = model.program
            if known.bound is not None:
                program = program.copy()
                program.add_row("bound", objective, lower=known.bound)
            hint = None if known.values is None else dict(enumerate(known.values))
            result = self.run(name, program, objective, FIRST_SHARE, hint)
        if known != NOTHING:
            result = better(result, known)
        if not self._ended(result) and not many and (apart := self._apart(name, model, objective)) != NOTHING:
            result = better(apart, result)
        if not self._ended(result) and not (many and near(result)):
            start = result.values if result.values is not None else self._start(model)
            if start is not None:
                value = evaluate(objective, start)
                result = better(result, Result(Status.FEASIBLE, start, value, None, "effort"))
            hint = None if start is None else dict(enumerate(start))
            # What is proved so far spares the solver from proving it again.
            bounded = model.program.copy()
            bounded.add_row("bound", objective, lower=result.bound, upper=result.objective)
            result = better(result, self.run(name, bounded, objective, 1.0, hint))
        if not self._ended(result) and not near(result) and highs.available():
            left = self.limits().seconds
            opinion = self.guarded(
                lambda: highs.minimise(model.program, objective, seconds=left, seed=self.options.seed, log=self.options.log is not None)
            )
            result = better(result, opinion)
        if result.status is Status.INFEASIBLE:
            return self.confirmed(model, objective)
        if result.values is None and (start := self._start(model) or self._any(model)) is not None:
            result = better(result, Result(Status.FEASIBLE, start, evaluate(objective, start), None, "effort"))
        return result if result.closed else replace(result, stopped_by=self.reason(result.stopped_by))

    def reason(self, otherwise: str | None) -> str | None:
        """Why the search ended: an interrupt or the clock, where they did, else as the last run says."""
        if self.interrupted:
            return "interrupt"
        return "time" if self.over else otherwise

    def _apart(self, name: str, model: Model, objective: Terms) -> Result:
        """Take the deployments apart; nothing where the program does not fall apart."""
        if self.over:
            return NOTHING
        limits = replace(self.limits(), effort=self.options.effort * DECOMPOSITION_SHARE)
        return self.guarded(lambda: decompose(model, objective, limits, self.report(name)) or NOTHING)

    def _ended(self, result: Result) -> bool:
        return result.closed or result.stopped_by == "gap" or self.over

    def confirmed(self, model: Model, objective: Terms) -> Result:
        """Ask a second check about a program that CP-SAT called infeasible."""
        second = confirm.impossible(model.program, self.limits())
        if second.values is None:
            return second
        value = evaluate(objective, second.values)
        return Result(Status.FEASIBLE, second.values, value, None, "effort")

    def _start(self, model: Model) -> tuple[int, ...] | None:
        """Greedy counts completed to a solution of the whole program, or None."""
        if self.instance.objective not in {"cost", "gpus"}:
            return None
        if model.instance.seats:
            return running_start(model, self.limits(FIRST_SHARE))
        counts = greedy(model, self.options.seed)
        if counts is None:
            return None
        return self.complete(model, counts)

    def _any(self, model: Model) -> tuple[int, ...] | None:
        """Any plan, for whoever interrupted, or whose time was up, before there was one; a short search, and None where it is not asked for or finds none."""
        if not self.over:
            return None
        limits = replace(self.limits(FIRST_SHARE), seconds=None)
        return self.guarded(lambda: cpsat.minimise(model.program, {}, limits)).values

    def complete(self, model: Model, counts: Sequence[int]) -> tuple[int, ...] | None:
        """Values of all variables for given counts, or None when no solution has them."""
        program = model.program
        if len(program.lower) == len(counts):
            return None if program.violated(counts) else tuple(counts)
        fixed = program.copy()
        for variable, count in zip(model.count, counts, strict=True):
            if count > program.upper[variable]:
                return None
            fixed.lower[variable] = fixed.upper[variable] = count
        return cpsat.minimise(fixed, model.cost, self.limits(FIRST_SHARE)).values

    def widen(self, decision: Decision, wider: Instance, name: str, value: int) -> None:
        """Carry a decision over to a model with more shapes, the objective fixed at its value; the decision stays where that fails."""
        assert decision.model is not None
        known = dict(zip(decision.model.instance.source.tolist(), decision.counts, strict=True))
        model = self.build(wider)
        model.program.add_row("fixed", expression(model, name), upper=value)
        values = self.complete(model, [known.get(shape, 0) for shape in wider.source.tolist()])
        if values is not None:
            decision.model, decision.values = model, values


def near(result: Result) -> bool:
    """Whether so little is left to prove that the effort is better spent on the ties."""
    if result.objective is None or result.bound is None:
        return False
    return result.objective - result.bound <= NEAR * abs(result.objective)


def break_ties(search: Search, decision: Decision, fixed: dict[str, int]) -> None:
    """Run the tie-breaking stages on a decision in place; `fixed` holds the values of earlier stages by name."""
    _run_stages(search, decision, fixed)
    decision.interrupted = search.interrupted or interrupts.asked()


def _run_stages(search: Search, decision: Decision, fixed: dict[str, int]) -> None:
    for name in (*stages_after(search.instance), "whole_scopes", "order"):
        model, values = decision.model, decision.values
        if model is None or search.over:
            return
        if name == "whole_scopes":
            whole = search.build(model.instance, keep_whole=True)
            if not whole.whole_scopes():
                continue
            for stage, value in fixed.items():
                whole.program.add_row("fixed", expression(whole, stage), upper=value)
            hint = {new: values[old] for new, old in zip(whole.count, model.count, strict=True)}
            result = search.run(name, whole.program, whole.whole_scopes(), SECONDARY_SHARE[name], hint)
            if result.values is None:
                continue
            model = whole
        else:
            objective = expression(model, name)
            if name == "order" and len(search.instance.shapes) <= search.instance.deployments:
                continue
            current = evaluate(objective, values)
            if current == 0:
                result = Result(Status.OPTIMAL, values, 0, 0)
            else:
                result = search.run(name, model.program, objective, SECONDARY_SHARE[name], dict(enumerate(values)))
                if result.values is None or (result.objective is not None and result.objective > current):
                    result = Result(Status.FEASIBLE, values, current, result.bound)
        assert result.values is not None
        assert result.objective is not None
        decision.model, decision.values = model, result.values
        decision.stages.append(Stage(name, result.objective, result.bound))
        fixed[name] = result.objective
        model.program.add_row("fixed", expression(model, name), upper=result.objective)

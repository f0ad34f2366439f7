"""The stages of one solve: the objective asked for, then what breaks its ties, each with the earlier values fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from planner import interrupts
from planner.plan.outcome import Status
from planner.solve import confirm, cpsat, highs
from planner.solve.clock import Clock
from planner.solve.decision import Decision, Stage
from planner.solve.decomposition.proof import CLOSE, FAR, MANY, NEAR_ALONE, Apart, take_apart
from planner.solve.greedy import greedy
from planner.solve.instance import Instance
from planner.solve.model import Model, Rule, build
from planner.solve.narrowing import narrowed, taken_apart
from planner.solve.options import Progress, SolveOptions
from planner.solve.program import Program, Terms, evaluate
from planner.solve.result import NOTHING, Result, better, near
from planner.solve.rules.priority import levels
from planner.solve.scaling import STAGE_UNITS
from planner.solve.stages import expression, running_start, stages_after
from planner.solve.unbilled import near_unbilled

FIRST_SHARE = 0.05
"""Share of the effort of short runs that complete counts to plans, or look for any plan."""

FEW_SHARE = 0.005
"""Share of the effort of the first run where deployments are few."""

DECOMPOSITION_SHARE = 0.25
"""Share of the effort of each combination of deployments' choices."""

FEW_DECOMPOSITION_SHARE = 0.01
"""The same where deployments are few."""


LOOSE_SHARE = 0.5
"""Share of the effort for the whole program where boxes around a plan were searched before."""

ANY = 1.0
"""Gap within which every plan lies."""

__all__ = ["ANY", "Decision", "Search", "Stage"]


class Search:
    """One solve of one instance under given rules; one that takes `part` of the effort for its objective does without the second solver."""

    def __init__(self, instance: Instance, options: SolveOptions, rules: Sequence[Rule]) -> None:
        self.instance, self.options, self.rules = instance, options, tuple(rules)
        self._clock = Clock.of(options.time_limit)
        self.interrupted = False
        self.promised: list[int] = []
        self.part: float | None = None
        self.apart: Apart | None = None
        self.within: dict[int, tuple[int, int]] = {}
        self.settled: dict[str, int] = {}
        self.serving: dict[int, int] = {}
        self.loose: Apart | None = None
        self.most_gpus: int | None = None

    def after(self, instance: Instance, part: float) -> Search:
        """Open the search of what comes next over an instance, with part of the effort, what is left of the time, and the same promises."""
        found = Search(instance, self.options, self.rules)
        found._clock, found.promised, found.part = self._clock, list(self.promised), part
        return found

    def build(self, instance: Instance, keep_whole: bool = False) -> Model:
        """Build the program of an instance, with what goes unserved at every level of importance, and the GPUs, fixed as far as they are decided."""
        model = build(instance, self.rules, keep_whole)
        for terms, value in zip(levels(model), self.promised, strict=False):
            model.program.add_row("fixed", terms, upper=value)
            for variable, weight in terms.items():
                model.program.upper[variable] = min(model.program.upper[variable], value // weight)
        if self.most_gpus is not None:
            model.program.add_row("fixed", model.gpus(), upper=self.most_gpus)
        if self.within:
            # Where every load goes unserved, no shape is left.
            limits = [self.within[shape] for shape in instance.source.tolist()]
            model.program = model.program.within(model.count, [low for low, _ in limits], [high for _, high in limits])
        return model

    def limits(self, share: float = 1.0) -> cpsat.Limits:
        """Limits of one run: its share of the effort, and what is left of the time."""
        gap = self.options.gap if share in {1.0, FIRST_SHARE, FEW_SHARE} else 0.0
        return cpsat.Limits(self.options.effort * share, self._clock.left, gap, self.options.seed, self.options.log)

    @property
    def over(self) -> bool:
        """Whether the time is up or the user has interrupted."""
        self.interrupted = self.interrupted or interrupts.asked()
        return self.interrupted or self._clock.up

    def run(
        self, name: str, program: Program, objective: Terms, share: float, hint: Mapping[int, int] | None = None, gap: float | None = None
    ) -> Result:
        """Minimise with CP-SAT, telling progress; nothing once the search is over. A `gap` takes the place of the one asked for."""
        if self.over:
            return Result(Status.UNKNOWN, stopped_by=self.reason("effort"))
        limits = self.limits(share) if gap is None else replace(self.limits(share), gap=gap)
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

        A very short run of CP-SAT decides small questions. Then deployments are taken apart, which proves most large ones; what is left goes to
        CP-SAT in full, within what the bound by deployments leaves of every count, and to HiGHS where it is installed. The best plan and the best bound win;
        the greedy plan answers when nothing else does.
        """
        # Whether a load need go unserved at all is a question that bounds seldom answer.
        many = self.instance.deployments >= MANY and name != "unserved"
        if model.instance.seats and (running := self._start(model)) is not None:
            # What runs already is the best place to start from.
            known = better(known, Result(Status.FEASIBLE, running, evaluate(objective, running), None, "effort"))
        whole_nodes = NOTHING if name != "cost" else near_unbilled(self, model, objective)
        known = better(known, whole_nodes) if whole_nodes != NOTHING else known
        result = self.take_apart(name, model, objective) if many and whole_nodes.values is None else NOTHING
        if result == NOTHING:
            program = model.program
            if known.bound is not None:
                program = program.copy()
                program.add_row("bound", objective, lower=known.bound)
            hint = None if known.values is None else dict(enumerate(known.values))
            result = self.run(name, program, objective, FIRST_SHARE if many or name == "unserved" else FEW_SHARE, hint)
        if known != NOTHING:
            result = better(result, known)
        if not self._ended(result) and not many and (apart := self.take_apart(name, model, objective, result)) != NOTHING:
            result = better(apart, result)
        enough = near(result, NEAR_ALONE) if self._with_alone(model) else many and near(result)
        if not self._ended(result) and not enough:
            result = self._in_full(name, model, objective, result)
        alone = False
        # Units of load that go unserved are too many for doubles: its bound there has been above plans.
        second = self.part is None and self.loose is None and not any(model.program.upper[variable] for variable in model.unserved.values())
        if not self._ended(result) and not enough and not near(result) and second and (nodes := highs.nodes_for(model.program)):
            left = self.limits().seconds
            opinion = self.guarded(
                lambda: highs.minimise(model.program, objective, nodes, left, self.options.seed, log=self.options.log is not None)
            )
            result, alone = better(result, opinion), opinion.status is Status.INFEASIBLE
        if result.status is Status.INFEASIBLE:
            return self.confirmed(model, objective, said_by_highs=alone)
        if result.values is None and (start := self._start(model) or self._any(model)) is not None:
            result = better(result, Result(Status.FEASIBLE, start, evaluate(objective, start), None, "effort"))
        return result if result.closed else replace(result, stopped_by=self.reason(result.stopped_by))

    def _in_full(self, name: str, model: Model, objective: Terms, result: Result) -> Result:
        """Minimise the whole program with all of the effort, started from the best plan and the best bound so far."""
        start = result.values if result.values is not None else self._start(model)
        if start is not None:
            result = better(result, Result(Status.FEASIBLE, start, evaluate(objective, start), None, "effort"))
        hint = None if start is None else dict(enumerate(start))
        # What is proved so far spares the solver from proving it again.
        bounded = model.program.copy()
        bounded.add_row("bound", objective, lower=result.bound, upper=result.objective)
        share = 1.0
        if self.loose is not None and result.objective is not None and len(self.loose.model.count) == len(model.count):
            # Replicas that nobody needs cost nothing in nodes that are paid for anyway.
            found, share = self.loose.ranges(result.objective, minimal=False), 1.0 if model.instance.seats else LOOSE_SHARE
            if found is not None:
                bounded = bounded.within(model.count, found.low.tolist(), found.high.tolist())
        if self.apart is not None and self.apart.model is model and result.objective is not None:
            found = self.apart.ranges(result.objective)
            if found is not None:
                shapes = len(model.count)
                bounded = bounded.within(model.count, found.low[:shapes].tolist(), found.high[:shapes].tolist())
                # So little is left of most counts that the plan known only leads astray.
                hint = None
        return better(result, self.run(name, bounded, objective, share if self.part is None else self.part, hint))

    def _with_alone(self, model: Model) -> bool:
        """Whether the program was taken apart into deployments of which some are programs themselves, so that lists prove little more."""
        return self.apart is not None and self.apart.model is model and self.apart.with_alone

    def reason(self, otherwise: str | None) -> str | None:
        """Why the search ended: an interrupt or the clock, where they did, else as the last run says."""
        if self.interrupted:
            return "interrupt"
        return "time" if self.over else otherwise

    def take_apart(self, name: str, model: Model, objective: Terms, known: Result = NOTHING) -> Result:
        """Take the deployments apart; nothing where the program does not fall apart. Few deployments start from what is `known` and end early."""
        if self.over:
            return NOTHING
        few = self.instance.deployments < MANY or name == "unserved"
        share, reach = (FEW_DECOMPOSITION_SHARE, CLOSE) if few else (DECOMPOSITION_SHARE, FAR)
        limits = replace(self.limits(), effort=self.options.effort * share * (self.part or 1.0))

        def run() -> Result:
            self.apart = take_apart(model, objective, lambda: self.over)
            if self.apart is None:
                return NOTHING
            if self.apart.bound is None:
                return Result(Status.INFEASIBLE)
            return self.apart.prove(limits, self.report(name), known, reach, lambda counts: self.complete(model, counts, objective))

        return self.guarded(run)

    def _ended(self, result: Result) -> bool:
        return result.closed or result.stopped_by == "gap" or self.over

    def confirmed(self, model: Model, objective: Terms, *, said_by_highs: bool = False) -> Result:
        """Ask a second check about a program that one solver called infeasible."""
        second = confirm.impossible(model.program, self.limits(), said_by_highs=said_by_highs)
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

    def complete(self, model: Model, counts: Sequence[int], objective: Terms | None = None) -> tuple[int, ...] | None:
        """Values of all variables for given counts, at least money or another `objective`; None when no solution has them."""
        program = model.program
        if len(program.lower) == len(counts):
            return None if program.violated(counts) else tuple(counts)
        fixed = program.copy()
        for variable, count in zip(model.count, counts, strict=True):
            if count > program.upper[variable]:
                return None
            fixed.lower[variable] = fixed.upper[variable] = count
        return cpsat.minimise(fixed, model.cost if objective is None else objective, self.limits(FIRST_SHARE)).values

    def widen(self, decision: Decision, objective: Terms, result: Result) -> None:
        """Carry a decision over to a model of all shapes and counts that plans of its value may have; the decision stays where that fails.

        Where all such plans can be listed, `settled` has the least values of the stages that follow.
        """
        if not self.over:
            self.guarded(lambda: self._widen(decision, objective, result))

    def _widen(self, decision: Decision, objective: Terms, result: Result) -> Result:
        model = decision.model
        assert model is not None
        assert result.objective is not None
        name, proved = model.instance.objective, result.status is Status.OPTIMAL
        counts = dict(zip(model.instance.source.tolist(), decision.counts, strict=True))
        wide = model if len(model.instance.shapes) == len(self.instance.shapes) else self.build(self.instance)
        apart, found = taken_apart(self.apart, model, objective), None
        stages = stages_after(wide.instance)
        if apart is not None:
            expressions = [expression(wide, stage) for stage in stages]
            found = narrowed(apart, wide, expression(wide, name), result.objective, expressions, counts, proved=proved)
        if found is not None:
            sources = wide.instance.source.tolist()
            self.within = dict(zip(sources, zip(found.low.tolist(), found.high.tolist(), strict=True), strict=True))
            if found.counts:
                counts, self.settled = dict(zip(sources, found.counts, strict=True)), dict(zip(stages, found.values, strict=True))
            wide = self.build(wide.instance.keep(found.high > 0))
        if wide is model:
            return result
        values = self.complete(wide, [counts.get(shape, 0) for shape in wide.instance.source.tolist()])
        if values is None:
            self.within, self.settled = {}, {}
        else:
            decision.model, decision.values = wide, values
        return result

"""From a problem file to an audited plan: load, menu, formulation, document, audit. The whole answer, for the command and for programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from planner.answer.document import plan_document
from planner.answer.impossible import what_would_help
from planner.answer.pareto import Front, SearchLimits, pareto_front
from planner.audit.audit import audit
from planner.candidates.buckets import Evaluator
from planner.candidates.explain import explain_degrees
from planner.candidates.kernel_notes import kernel_notes
from planner.candidates.memory_notes import memory_notes
from planner.candidates.menu import Menu, build_menu, largest_batches
from planner.candidates.remembered import Remembered
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity, errors
from planner.interrupts import Interrupts, asked
from planner.plan.document import PlanDocument
from planner.plan.outcome import Outcome, Status
from planner.plan.shape import Degrees
from planner.problem.load import LoadedProblem, load_problem

if TYPE_CHECKING:
    from planner.solve.options import Progress, SolveOptions

DEGREE_WORDS = re.compile(r"(tp|pp|ep|dp)(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Options:
    """How to answer: overrides of the problem (`PATH=VALUE`), a forced shape, limits of the search, and where progress goes.

    `explain` thinks of room that is not there yet and of other targets where there is no plan. `pareto`, tpot or ttft, also asks for the front of money against that time.
    `targets` asks for these last. `evaluator` evaluates layouts for menus. `log` hears the solvers' own logs, `phase` what is being done.
    From the search on Ctrl-C ends the search and not the answer; whoever gives `interrupts` is to release them, once the answer is shown.
    """

    overrides: Sequence[str] = ()
    force: str | None = None
    time_limit: float | None = None
    gap: float = 0.0
    profile: str | None = None
    progress: Callable[[Progress], None] | None = None
    pareto: Literal["tpot", "ttft"] | None = None
    explain: bool = True
    targets: bool = True
    evaluator: Evaluator | None = None
    log: Callable[[str], None] | None = None
    phase: Callable[[str], None] = lambda _: None
    interrupts: Interrupts | None = None


@dataclass(frozen=True)
class Answer:
    """An audited plan with what it was made from. `audit_errors` is empty unless the planner itself is wrong. `front` where it was asked for."""

    loaded: LoadedProblem
    menu: Menu
    outcome: Outcome
    plan: PlanDocument
    audit_errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    front: Front | None = None

    def targets(self) -> dict[str, tuple[float | None, float | None, float | None]]:
        """What each deployment asked: TPOT [s], TTFT [s], least efficiency [share]."""
        return {
            deployment.name: (
                deployment.slo.tpot if deployment.slo is not None else None,
                deployment.slo.ttft if deployment.slo is not None else None,
                deployment.min_efficiency,
            )
            for deployment in self.loaded.problem.deployments
        }

    def explain(self, shape: str) -> list[str]:
        """Say, for every deployment, why `shape` (`tp16`, `tp4-pp2`) is or is not in the plan."""
        return explain_degrees(self.loaded, self.menu, self.outcome, parse_degrees(shape), complete="-" in shape)


def parse_degrees(words: str, option: str = "") -> Degrees:
    """Read `tp4-pp2-ep4-dp2`, which `option` gives; degrees not named are 1.

    Raises
    ------
    PlannerError
        SHAPE_NOT_UNDERSTOOD when the words are anything else.
    """
    parts = DEGREE_WORDS.findall(words)
    rest = DEGREE_WORDS.sub("", words).strip(" -x,")
    named = {name.lower(): int(number) for name, number in parts}
    if rest or not parts or len(named) != len(parts) or min(named.values()) < 1 or max(named.values()) > 1_000_000:
        message = f"{words!r} is not a shape"
        raise PlannerError(
            [Diagnostic("SHAPE_NOT_UNDERSTOOD", message, "write it as tp8, tp4-pp2 or tp1-ep8-dp8", place=Place(path=option))]
        )
    return Degrees(named.get("tp", 1), named.get("pp", 1), named.get("ep", 1), named.get("dp", 1))


def answer(path: str, options: Options | None = None) -> Answer:
    """Answer a problem file with an audited plan.

    Raises
    ------
    PlannerError
        When the problem, its topology or its models cannot be used; every fault found is in it.
    """
    options = options or Options()
    overrides = list(options.overrides)
    if options.profile is not None:
        overrides.append(f"profile={options.profile}")
    options.phase("reading")
    return answer_loaded(load_problem(path, overrides), options)


def answer_loaded(loaded: LoadedProblem, options: Options | None = None) -> Answer:
    """Answer a problem that is already loaded."""
    options = options or Options()
    force = parse_degrees(options.force) if options.force else None
    options.phase("evaluating shapes")
    evaluator = options.evaluator or Remembered().evaluate
    options = replace(options, evaluator=evaluator)
    if options.pareto is None:
        return answer_menu(loaded, build_menu(loaded, force=force, evaluator=evaluator), options)
    if any(deployment.workload.buckets for deployment in loaded.problem.deployments):
        message = "a front weighs money against one time per token, and every bucket has its own"
        raise PlannerError([Diagnostic("RULES_NOT_TOGETHER", message, "leave `--pareto` out, or plan one length of requests")])
    menu = build_menu(loaded, force=force, evaluator=evaluator, every_batch=True)
    # The plan is the one that is found without the front, which alone needs smaller batches unless latency is asked.
    with _held(options):
        found = answer_menu(loaded, menu if loaded.problem.objective == "latency" else largest_batches(menu), options)
        limits = SearchLimits(options.time_limit, options.gap, options.progress)
        front = pareto_front(loaded, menu, found.plan, limits, options.pareto)
        outcome = replace(found.outcome, interrupted=found.outcome.interrupted or asked())
    plan = found.plan.model_copy(update={"pareto": front.document})
    return replace(found, outcome=outcome, plan=plan, front=front, audit_errors=(*found.audit_errors, *front.audit_errors))


@contextmanager
def _held(options: Options) -> Iterator[None]:
    """Hold Ctrl-C back, so that what was found is answered with; until the end here, unless the caller is to release it."""
    interrupts = options.interrupts or Interrupts()
    interrupts.hold()
    try:
        yield
    finally:
        if options.interrupts is None:
            interrupts.release()


def answer_menu(
    loaded: LoadedProblem, menu: Menu, options: Options, rearrange: Callable[[Outcome], Outcome] = lambda outcome: outcome
) -> Answer:
    """Answer a problem whose menu is known; `rearrange` may exchange GPUs that are alike before the plan is written down and audited."""
    with _held(options):
        options.phase("solving")
        outcome = _outcome(loaded, menu, options)
        if loaded.current is None:
            outcome = rearrange(outcome)
        names = tuple(deployment.name for deployment in loaded.problem.deployments)
        chosen = [replica.shape for replica in outcome.replicas]
        noted = (*memory_notes(menu, names, chosen), *kernel_notes(menu, names, chosen))
        warnings = (*loaded.warnings, *menu.diagnostics, *outcome.diagnostics, *noted)
        options.phase("writing the plan down")
        plan = plan_document(loaded, menu, outcome, warnings)
        options.phase("auditing")
        found = audit(loaded.problem, loaded.fabric, loaded.architectures, plan, loaded.current) if outcome.replicas else ()
        outcome = replace(outcome, interrupted=outcome.interrupted or asked())
    return Answer(loaded, menu, outcome, plan, errors(found), warnings)


def _outcome(loaded: LoadedProblem, menu: Menu, options: Options) -> Outcome:
    """Solve, unless the menu already tells that a deployment has no shape at all; then no solver is asked."""
    counts = Counter([shape.deployment for shape in menu.shapes] + [replica.shape.deployment for replica in menu.running])
    # A load that may go unserved altogether needs no shape.
    wanted = loaded.problem.deployments
    without = [index for index in range(len(menu.loads)) if not counts[index] and (wanted[index].may_go_unserved < 1.0 or not counts)]
    if without and loaded.problem.objective != "throughput":
        found = tuple(
            Diagnostic(
                "NO_SHAPE",
                f"{loaded.problem.deployments[index].name} has no shape that may run on this fleet",
                "see the nearest misses",
                Severity.WARNING,
            )
            for index in without
        )
        outcome = Outcome(Status.INFEASIBLE, None, (), diagnostics=found)
    else:
        from planner.solve.answer import solve

        outcome = solve(loaded.problem, loaded.fabric, menu.shapes, menu.loads, _search(loaded, options), menu.running)
    if outcome.status is not Status.INFEASIBLE or not options.explain:
        return outcome
    force = parse_degrees(options.force) if options.force else None
    evaluator = options.evaluator or Remembered().evaluate
    helping = what_would_help(loaded, menu, force, _search(loaded, options), evaluator, targets=options.targets)
    return replace(outcome, diagnostics=(*outcome.diagnostics, *helping))


def _search(loaded: LoadedProblem, options: Options) -> SolveOptions:
    """Limits of the search; where this module explains what is impossible the search need not."""
    from planner.solve.options import SolveOptions

    return SolveOptions(
        time_limit=options.time_limit,
        gap=options.gap,
        seed=loaded.problem.seed,
        explain=not options.explain,
        progress=options.progress,
        log=options.log,
    )

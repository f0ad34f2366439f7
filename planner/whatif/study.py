"""A study of one problem: its plan as it is, and the answers of any changes to it, each solved once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from planner.answer.answering import Answer
from planner.diagnostics import Diagnostic, PlannerError, errors
from planner.plan.diff import Snapshot, difference, snapshot
from planner.problem.load import LoadedProblem
from planner.whatif.engines import Engine
from planner.whatif.menus import MenuMemory
from planner.whatif.patching import Base, patched
from planner.whatif.progress import Progress
from planner.whatif.results import ScenarioResult, Solved
from planner.whatif.scenarios import Change, Scenario
from planner.whatif.solving import Limits, Unit, digest_of, solve_base, solve_unit, solved_of, unit_key
from planner.whatif.store import Store


@dataclass
class Study:
    """One problem under study. `store` holds the answers, `memory` the menus, `limits` hold for each solve."""

    base: Base
    answer: Answer
    store: Store
    memory: MenuMemory
    limits: Limits
    _digests: dict[tuple[Change, ...], str] = field(default_factory=dict)

    @cached_property
    def before(self) -> Snapshot:
        """The plan as it is."""
        return snapshot(self.answer.plan)

    @cached_property
    def _start(self) -> str:
        return digest_of(self.before)

    def key(self, problem_sha256: str) -> str:
        """Key of the unit that solves a problem of this study."""
        return unit_key(problem_sha256, self.limits, self._start)

    @cached_property
    def base_solved(self) -> Solved:
        """Answer of the problem as it is."""
        return solved_of(self.answer)

    def loaded(self, changes: Sequence[Change]) -> LoadedProblem:
        """The problem with some changes.

        Raises
        ------
        PlannerError
            When they cannot be made.
        """
        return patched(self.base, Scenario("", tuple(changes)))

    def solved(self, *changes: Change) -> Solved:
        """Answer of the problem with some changes, from the store where it is there.

        Raises
        ------
        PlannerError
            When the changes cannot be made, or the store cannot be written.
        """
        if not changes:
            return self.base_solved
        digest = self._digests.get(changes)
        if digest is None:
            digest = self._digests[changes] = self.loaded(changes).sha256
        key = self.key(digest)
        known = self.store.get(key)
        if known is not None:
            return known
        answer = solve_unit(Unit(key, self.loaded(changes), self.limits, self.before), self.memory)
        if answer.stopped_by == "interrupt":
            raise KeyboardInterrupt
        self.store.add(key, answer)
        return answer

    def unit(self, scenario: Scenario) -> Unit:
        """Unit of work of a scenario."""
        loaded = patched(self.base, scenario)
        return Unit(self.key(loaded.sha256), loaded, self.limits, self.before)

    def compared(self, scenario: Scenario, answer: Solved) -> ScenarioResult:
        """Answer of a scenario beside the plan as it is."""
        both = answer.found and self.base_solved.found
        return ScenarioResult(
            name=scenario.name,
            changes=tuple(map(str, scenario.changes)),
            answer=answer,
            difference=difference(self.before, answer.plan) if both else None,
        )


def open_study(base: Base, store: Store, limits: Limits) -> Study:
    """Solve the problem as it is and begin a study of it.

    Raises
    ------
    PlannerError
        When it has no price where cost is asked, or the audit refuses its plan.
    KeyboardInterrupt
        When it was interrupted: there is nothing to compare with then.
    """
    memory = MenuMemory()
    answer = solve_base(base.loaded, memory, limits)
    if answer.outcome.interrupted:
        raise KeyboardInterrupt
    return Study(base, answer, store, memory, limits)


@dataclass(frozen=True)
class Swept:
    """How a sweep went: answers in the order of the scenarios (None where it was stopped before), how many were new, and what stopped it."""

    answers: tuple[Solved | None, ...]
    fresh: int
    fault: Diagnostic | None = None
    interrupted: bool = False


def sweep(study: Study, scenarios: Sequence[Scenario], digests: Sequence[str], engine: Engine, *, shown: bool) -> Swept:
    """Solve scenarios that have been checked; each distinct problem once, whatever is stored already not again."""
    keys = [study.key(digest) for digest in digests]
    first = dict(zip(reversed(keys), reversed(scenarios), strict=True))
    work = {key: partial(study.unit, first[key]) for key in dict.fromkeys(keys) if key not in study.store}
    progress = Progress(len(set(keys)), len(set(keys)) - len(work), shown=shown)
    answers: dict[str, Solved] = {key: known for key in set(keys) if (known := study.store.get(key)) is not None}
    fault: Diagnostic | None = None
    interrupted = False
    running = engine(work) if work else iter(())
    try:
        for key, answer in running:
            if answer.stopped_by == "interrupt":
                interrupted = True
                break
            answers[key] = answer
            if answer.status != "failed":
                study.store.add(key, answer)
            progress.step()
    except KeyboardInterrupt:
        interrupted = True
    except PlannerError as error:
        if {item.code for item in error.diagnostics} != {"STORE_NOT_WRITABLE"}:
            raise
        fault = errors(error.diagnostics)[0]
    finally:
        _close(running)
        progress.close()
    return Swept(tuple(answers.get(key) for key in keys), study.store.fresh, fault, interrupted)


def _close(running: Iterator[tuple[str, Solved]]) -> None:
    close = getattr(running, "close", None)
    if close is not None:
        close()

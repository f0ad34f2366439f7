"""The whole what-if: read, check everything, solve the problem as it is, sweep the scenarios, answer the questions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from planner.diagnostics import Diagnostic, PlannerError, Severity, errors
from planner.plan.document import PlanDocument
from planner.whatif.engines import Engine, Work
from planner.whatif.engines.serial import serial
from planner.whatif.menus import MenuMemory
from planner.whatif.patching import Base, check_all, open_base
from planner.whatif.questions.asked import read_questions
from planner.whatif.results import QuestionResult, Solved, WhatIfDocument
from planner.whatif.scenario_file import QuestionPart
from planner.whatif.scenarios import Scenario, check_names
from planner.whatif.solving import Limits
from planner.whatif.store import Store
from planner.whatif.study import Study, Swept, open_study, sweep

# Fewer scenarios than this for each process are solved before the processes have started.
WORTH_A_PROCESS = 4


@dataclass(frozen=True)
class Request:
    """What is asked: a problem, scenarios and questions, and how to go about it.

    `jobs` are processes on this machine (None = one a core where there is enough to do), `store` is the file that keeps the answers. `shown` writes
    progress on stderr.
    """

    problem: str
    scenarios: Sequence[Scenario] = ()
    questions: QuestionPart = field(default_factory=QuestionPart)
    overrides: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    engine: Literal["local", "ray"] = "local"
    address: str | None = None
    jobs: int | None = None
    store: Path | None = None
    shown: bool = False


@dataclass(frozen=True)
class Response:
    """The answer, the plan of the problem as it is, warnings, and what stopped the run (None, and not interrupted: nothing)."""

    document: WhatIfDocument
    plan: PlanDocument
    warnings: tuple[Diagnostic, ...]
    fault: Diagnostic | None = None
    interrupted: bool = False


def respond(request: Request) -> Response:
    """Answer a what-if.

    Raises
    ------
    PlannerError
        With everything that is wrong with the problem, the scenarios and the questions, before anything is solved; or when the store cannot be
        used, an extra is missing, or no cluster is reached.
    """
    check_names(request.scenarios)
    base = open_base(request.problem, request.overrides)
    questions, digests = _checked(base, request)
    _check_extras(request)
    with Store(request.store) as store:
        study = open_study(base, store, request.limits)
        if study.answer.audit_errors:
            raise PlannerError(study.answer.audit_errors)
        swept = sweep(study, request.scenarios, digests, _engine(request, study.memory), shown=request.shown)
        answered: list[QuestionResult] = []
        fault, interrupted = swept.fault, swept.interrupted
        try:
            # One by one: what is answered before an interruption is kept.
            for question in questions if fault is None and not interrupted else ():
                answered.append(question(study))  # noqa: PERF401
        except KeyboardInterrupt:
            interrupted = True
        except PlannerError as error:
            fault = errors(error.diagnostics)[0]
        document = _document(study, request, swept, answered, len(questions))
        return Response(document, study.answer.plan, (*study.answer.warnings, *_store_warnings(store)), fault, interrupted)


def _checked(base: Base, request: Request) -> tuple[list[Callable[[Study], QuestionResult]], list[str]]:
    """Questions ready to be answered and digests of the scenarios' problems; every fault of both at once."""
    faults: list[Diagnostic] = []
    questions: list[Callable[[Study], QuestionResult]] = []
    digests: list[str] = []
    try:
        questions = read_questions(base, request.questions)
    except PlannerError as error:
        faults += error.diagnostics
    try:
        digests = check_all(base, request.scenarios)
    except PlannerError as error:
        faults += error.diagnostics
    if faults:
        raise PlannerError(faults)
    return questions, digests


def _check_extras(request: Request) -> None:
    if request.engine == "ray" and find_spec("ray") is None:
        hint = "install it: pip install 'llm-deployment-planner[ray]', or use --engine local"
        raise PlannerError([Diagnostic("EXTRA_MISSING", "--engine ray needs Ray, which is not installed", hint)])
    if request.engine == "local" and (request.jobs or 1) > 1 and find_spec("joblib") is None:
        hint = "install it: pip install 'llm-deployment-planner[sweep]', or use --jobs 1"
        raise PlannerError([Diagnostic("EXTRA_MISSING", "several processes need joblib, which is not installed", hint)])


def _engine(request: Request, memory: MenuMemory) -> Engine:
    """The engine asked for; on this machine one process where there is little to do or joblib is missing."""

    def run(work: Work) -> Iterator[tuple[str, Solved]]:
        if request.engine == "ray":
            from planner.whatif.engines.ray_cluster import ray_cluster

            yield from ray_cluster(work, request.address, request.jobs)
            return
        jobs = request.jobs
        if jobs is None:
            jobs = min(_cores(), len(work) // WORTH_A_PROCESS) if find_spec("joblib") is not None else 1
        if jobs > 1:
            from planner.whatif.engines.processes import processes

            yield from processes(work, jobs)
        else:
            yield from serial(work, memory)

    return run


def _cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _document(study: Study, request: Request, swept: Swept, answered: Sequence[QuestionResult], asked: int) -> WhatIfDocument:
    rows = [
        study.compared(scenario, answer) for scenario, answer in zip(request.scenarios, swept.answers, strict=True) if answer is not None
    ]
    return WhatIfDocument(
        problem=study.base.loaded.problem.name,
        base=study.base_solved,
        scenarios=tuple(rows),
        questions=tuple(answered),
        complete=len(rows) == len(request.scenarios) and len(answered) == asked,
    )


def _store_warnings(store: Store) -> tuple[Diagnostic, ...]:
    if not store.damaged:
        return ()
    message = f"{store.damaged} lines of the store {store.path} are damaged; what they held was solved again"
    return (Diagnostic("STORE_DAMAGED", message, "keep the store on a disk that keeps its data", Severity.WARNING),)

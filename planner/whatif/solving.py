"""One problem -> its answer, audited; the same in this process, in another, and on another machine."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from planner import __version__
from planner.answer.answering import Answer, Options, answer_menu
from planner.candidates.menu import build_menu
from planner.candidates.remembered import Remembered
from planner.catalog.digest import catalog_sha256
from planner.diagnostics import Diagnostic, PlannerError, Severity
from planner.plan.diff import Snapshot, snapshot
from planner.plan.document import DeploymentDocument, DiagnosticDocument, PlanDocument, RejectedDocument
from planner.plan.outcome import Outcome
from planner.problem.load import LoadedProblem
from planner.whatif.menus import MenuMemory
from planner.whatif.results import DeploymentResult, Solved
from planner.whatif.steady import steady

NEAREST = 3  # misses told of each deployment without a plan


@dataclass(frozen=True)
class Limits:
    """When to stop one solve: wall seconds [s] and relative gap; neither by default."""

    time_limit: float | None = None
    gap: float = 0.0


@dataclass(frozen=True)
class Unit:
    """One problem to be solved: `key` is the digest of all that its answer depends on, so the same work has the same key anywhere."""

    key: str
    loaded: LoadedProblem
    limits: Limits
    before: Snapshot | None = None


def unit_key(problem_sha256: str, limits: Limits, start: str) -> str:
    """Digest of a problem, the limits, the plan it starts from (itself a digest), the catalog and this version of the planner."""
    parts = [problem_sha256, limits.time_limit, limits.gap, start, catalog_sha256(), __version__]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def digest_of(before: Snapshot) -> str:
    """Digest of what runs where."""
    return hashlib.sha256(before.model_dump_json().encode()).hexdigest()


def solve_base(loaded: LoadedProblem, memory: MenuMemory, limits: Limits) -> Answer:
    """Answer of the problem as it is, as `planner solve` gives it."""
    return _answer(loaded, memory, limits, lambda outcome: outcome)


def solve_unit(unit: Unit, memory: MenuMemory) -> Solved:
    """Answer of one unit. What is wrong with one problem never ends a sweep: it becomes an answer of status `failed`."""
    before = unit.before
    try:
        found = _answer(
            unit.loaded, memory, unit.limits, lambda outcome: outcome if before is None else steady(outcome, unit.loaded, before)
        )
    except PlannerError as error:
        return failed(unit.loaded, error.diagnostics)
    except RuntimeError as error:
        return failed(unit.loaded, [Diagnostic("SOLVE_FAILED", f"the solver failed: {error}", "report it with your files")])
    # Ctrl-C may leave a plan whose ties are not broken; such an answer would depend on the moment.
    return solved_of(found).model_copy(update={"stopped_by": "interrupt"}) if found.outcome.interrupted else solved_of(found)


def _answer(loaded: LoadedProblem, memory: MenuMemory, limits: Limits, rearrange: Callable[[Outcome], Outcome]) -> Answer:
    evaluator = Remembered(memory.evaluate).evaluate
    menu = build_menu(loaded, evaluator=evaluator)
    # Targets are for sweeps to vary; each would be evaluated anew.
    options = Options(time_limit=limits.time_limit, gap=limits.gap, targets=False, evaluator=evaluator)
    return answer_menu(loaded, menu, options, rearrange)


def solved_of(answer: Answer) -> Solved:
    """What a what-if keeps of an answer."""
    plan = answer.plan
    if answer.audit_errors:
        return failed(answer.loaded, answer.audit_errors)
    return Solved(
        problem_sha256=answer.loaded.sha256,
        status=plan.status,
        stopped_by=plan.stopped_by,
        objective=plan.objective,
        gpus_total=plan.gpus_total,
        deployments=tuple(map(_deployment, plan.deployments)),
        misses=() if plan.deployments else tuple(_nearest(plan)),
        diagnostics=tuple(item for item in plan.diagnostics if item.severity != "note"),
        plan=snapshot(plan),
    )


def failed(loaded: LoadedProblem, diagnostics: Iterable[Diagnostic]) -> Solved:
    """Answer that says why there is none."""
    return Solved(
        problem_sha256=loaded.sha256,
        status="failed",
        stopped_by=None,
        objective=None,
        gpus_total=sum(pool.nodes * pool.gpus_per_node for pool in loaded.fabric.pools),
        deployments=(),
        misses=(),
        diagnostics=tuple(
            DiagnosticDocument(code=item.code, severity=item.severity.value, message=item.message, hint=item.hint)
            for item in diagnostics
            if item.severity is Severity.ERROR
        ),
        plan=Snapshot(
            problem=loaded.problem.name, status="failed", cost_per_hour=None, currency=loaded.fabric.currency, gpus=0, replicas=()
        ),
    )


def _deployment(deployment: DeploymentDocument) -> DeploymentResult:
    shapes = Counter(
        (replica.shape.tp, replica.shape.pp, replica.shape.dp, replica.shape.ep, replica.shape.gpu) for replica in deployment.replicas
    )
    words = [
        f"{count} x TP{tp}"
        + (f" x PP{pp}" if pp > 1 else "")
        + (f" x DP{dp}" if dp > 1 else "")
        + (f" x EP{ep}" if ep > 1 else "")
        + f" on {gpu}"
        for (tp, pp, dp, ep, gpu), count in shapes.items()
    ]
    return DeploymentResult(
        name=deployment.name,
        shapes=", ".join(words),
        replicas=len(deployment.replicas),
        gpus=sum(len(replica.ranks) for replica in deployment.replicas),
        price_per_hour=deployment.price_per_hour,
        load=deployment.load,
        load_unit=deployment.load_unit,
        capacity=deployment.capacity,
        tpot_s=max(replica.times.tpot_s for replica in deployment.replicas),
        ttft_s=max(replica.times.ttft_s for replica in deployment.replicas),
    )


def _nearest(plan: PlanDocument) -> Iterable[RejectedDocument]:
    """First misses of each deployment, which stand nearest first."""
    told: Counter[str] = Counter()
    for item in plan.rejected:
        told[item.deployment] += 1
        if told[item.deployment] <= NEAREST:
            yield item

"""Money against latency: the plans that no other plan beats in both, each written down and audited like any plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from planner.answer.document import plan_document
from planner.audit.audit import audit
from planner.candidates.menu import Menu
from planner.diagnostics import Diagnostic, errors
from planner.plan.document import ParetoDocument, ParetoPointDocument, ParetoShapesDocument, PlanDocument
from planner.problem.load import LoadedProblem

if TYPE_CHECKING:
    from planner.solve.options import Progress


@dataclass(frozen=True)
class SearchLimits:
    """Limits of the search: wall time [s], relative gap, and where progress goes."""

    time_limit: float | None = None
    gap: float = 0.0
    progress: Callable[[Progress], None] | None = None


@dataclass(frozen=True)
class Front:
    """The front as a document, the whole plan of each of its points, and what the audit found wrong with any of them."""

    document: ParetoDocument
    plans: tuple[PlanDocument, ...]
    audit_errors: tuple[Diagnostic, ...]


def pareto_front(loaded: LoadedProblem, menu: Menu, plan: PlanDocument, limits: SearchLimits, by: Literal["tpot", "ttft"]) -> Front:
    """Find the cheapest plan at every latency worth asking for.

    Parameters
    ----------
    loaded
        The problem; its loads, targets, budget and rules hold for every point, whatever its objective.
    menu
        Shapes with their smaller batches: a smaller batch answers faster.
    plan
        The plan of the problem as it is; where there is none there is no front.
    limits
        Limits of the whole front.
    by
        The time that is weighed against money: tpot or ttft. Where a shape has no price GPUs stand for money.
    """
    priced = all(loaded.fabric.pools[shape.pool].price_per_gpu is not None for shape in menu.shapes)
    money: Literal["cost", "gpus"] = "cost" if priced else "gpus"
    if plan.status == "infeasible":
        return Front(ParetoDocument(by=by, money=money, complete=True, points=()), (), ())
    from planner.solve.front import solve_front
    from planner.solve.options import SolveOptions

    # Moves are paid once and latency always: the front is that of plans made afresh.
    asked = replace(loaded, problem=loaded.problem.model_copy(update={"objective": money, "current": None}), current=None)
    options = SolveOptions(time_limit=limits.time_limit, gap=limits.gap, seed=asked.problem.seed, progress=limits.progress)
    found, complete = solve_front(asked.problem, asked.fabric, menu.shapes, menu.loads, options, by)
    plans: list[PlanDocument] = []
    points: list[ParetoPointDocument] = []
    wrong: list[Diagnostic] = []
    for outcome, proved in found:
        document = plan_document(asked, menu, outcome, outcome.diagnostics)
        wrong.extend(errors(audit(asked.problem, asked.fabric, asked.architectures, document)) if outcome.replicas else ())
        plans.append(document)
        points.append(_point(document, proved))
    return Front(ParetoDocument(by=by, money=money, complete=complete, points=tuple(points)), tuple(plans), tuple(wrong))


def _point(plan: PlanDocument, proved: bool) -> ParetoPointDocument:
    """Sum a plan up: what it costs, its worst times, its shapes."""
    replicas = [replica for deployment in plan.deployments for replica in deployment.replicas]
    counts = Counter((deployment.name, replica.shape) for deployment in plan.deployments for replica in deployment.replicas)
    assert plan.objective is not None
    return ParetoPointDocument(
        cost_per_hour=plan.cost_per_hour,
        gpus_used=plan.gpus_used,
        tpot_s=max((replica.times.tpot_s for replica in replicas), default=0.0),
        ttft_s=max((replica.times.ttft_s for replica in replicas), default=0.0),
        shapes=tuple(ParetoShapesDocument(deployment=name, shape=shape, replicas=count) for (name, shape), count in counts.items()),
        bound=plan.objective.bound,
        gap=plan.objective.gap,
        proof="optimal" if proved else "feasible",
    )

"""Check a plan by its own arithmetic: every violation found, all at once."""

from __future__ import annotations

from collections.abc import Sequence

from planner.audit.case import Case
from planner.audit.checks import CHECKS
from planner.catalog.architecture import ModelArchitecture
from planner.collector import uncollected
from planner.diagnostics import Diagnostic
from planner.plan.document import PlanDocument
from planner.problem.current_plan import CurrentPlan
from planner.problem.documents import Problem
from planner.topology.fabric import Fabric


@uncollected
def audit(
    problem: Problem,
    fabric: Fabric,
    architectures: Sequence[ModelArchitecture],
    plan: PlanDocument,
    current: CurrentPlan | None = None,
) -> tuple[Diagnostic, ...]:
    """Recompute a plan and compare: weights, KV cache, legality, load, domains, money and times.

    Nothing of the formulation, the menu or the cost model's memory is used; only times are asked of `cost.evaluation`.

    Parameters
    ----------
    problem
        The question.
    fabric
        The cluster the plan is for.
    architectures
        The model of each deployment, in the problem's order.
    plan
        The answer, as `planner solve --json` prints it.
    current
        What the problem says runs already, as its file tells it.

    Returns
    -------
    tuple of Diagnostic
        Every violation, in the order of the checks and of the document; empty when the plan is right.
    """
    case = Case(problem, fabric, tuple(architectures), plan, current)
    return tuple(diagnostic for check in CHECKS for diagnostic in check.run(case))

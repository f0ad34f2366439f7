"""Whether a plan is older than what it was made from."""

from __future__ import annotations

from planner.catalog.digest import catalog_sha256
from planner.diagnostics import Diagnostic, Place, Severity
from planner.plan.document import PlanDocument

HINT = "solve again: `planner solve PROBLEM -o plan.json`"


def age_of(plan: PlanDocument, problem_sha256: str | None, file: str) -> tuple[Diagnostic, ...]:
    """Warnings of a plan made for another version of its problem (None = not at hand) or with other facts; `file` is where the plan was read."""
    found = []
    if problem_sha256 is not None and plan.provenance.problem_sha256 != problem_sha256:
        message = "the problem, its topology or a model has changed since this plan was made"
        found.append(_warning("PLAN_OLDER_THAN_PROBLEM", message, Place(file, path="provenance.problem_sha256")))
    if plan.provenance.catalog_sha256 != catalog_sha256():
        message = "the catalog's facts have changed since this plan was made"
        found.append(_warning("PLAN_OLDER_THAN_CATALOG", message, Place(file, path="provenance.catalog_sha256")))
    return tuple(found)


def _warning(code: str, message: str, place: Place) -> Diagnostic:
    return Diagnostic(code, message, HINT, Severity.WARNING, place)

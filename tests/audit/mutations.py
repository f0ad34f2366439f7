"""Ways to make a right plan wrong, each a small lie or slip that an answer could contain."""

from __future__ import annotations

import copy

from planner.plan.document import PlanDocument
from tests.audit import answer_mutations, figure_mutations, placing_mutations, serving_mutations
from tests.audit.edits import MUTATIONS

__all__ = ["MUTATIONS", "mutate"]

# Importing a module of mutations registers them.
KINDS = (placing_mutations, figure_mutations, answer_mutations, serving_mutations)


def mutate(case, name, rng):
    """The plan of `case` after one mutation, or None where it does not apply."""
    data = copy.deepcopy(case.plan.model_dump())
    return PlanDocument.model_validate(data) if MUTATIONS[name](data, case, rng) is not False else None

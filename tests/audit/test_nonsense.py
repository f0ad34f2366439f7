"""Whatever stands in a plan document, the auditor answers with diagnostics, never with a traceback."""

from __future__ import annotations

import copy
import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.audit.audit import audit
from planner.plan.document import PlanDocument
from tests.audit.mutations import MUTATIONS, mutate
from tests.audit.scenarios import cases

NUMBERS = (0, -1, 1, 3, 2**31, 2**63, 2**70, 10**400)
FLOATS = (0.0, -1.0, 1e300, 1e-300, math.nan, math.inf, -math.inf)
TEXTS = ("", "?", "domain", "h100-sxm-80gb", "a\u0301", "x" * 2000)


def scramble(value, rng, chance):
    """A copy of plain data with some leaves replaced by nonsense of the same type."""
    if isinstance(value, dict):
        return {key: scramble(item, rng, chance) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(scramble(item, rng, chance) for item in value if rng.random() > chance / 4)
    if rng.random() > chance or value is None or isinstance(value, bool):
        return value
    return rng.choice(NUMBERS if isinstance(value, int) else FLOATS if isinstance(value, float) else TEXTS)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.002, 0.02, 0.2]), st.integers(0, len(cases()) - 1))
def test_scrambled_plans_bring_diagnostics_only(seed, chance, index):
    rng, case = random.Random(seed), cases()[index]
    plain = case.plan.model_dump()
    data = {**scramble(copy.deepcopy(plain), rng, chance), "status": plain["status"], "format_version": 1}
    plan = PlanDocument.model_validate(data)
    found = audit(case.problem, case.fabric, case.architectures, plan)
    # Scrambling may leave everything that counts untouched (a seed, a hash); what it may not do is raise.
    assert all(diagnostic.code and diagnostic.message and diagnostic.hint for diagnostic in found)


def test_a_plan_for_another_fleet_is_refused():
    for case, other in zip(cases(), (*cases()[1:], cases()[0]), strict=True):
        assert audit(case.problem, case.fabric, case.architectures, other.plan)


def test_an_honest_refusal_passes():
    """A plan that says "infeasible" claims nothing that could be checked."""
    for case in cases():
        changes = {"status": "infeasible", "objective": None, "deployments": (), "cost_per_hour": None, "gpus_used": 0, "nodes": ()}
        plan = case.plan.model_copy(update=changes)
        assert audit(case.problem, case.fabric, case.architectures, plan) == ()


def test_several_faults_are_told_at_once():
    """One plan with many things wrong brings an error for each of them."""
    case, rng = cases()[0], random.Random(4)
    several = ("price_of_replica_lowered", "weights_lowered", "gap_misstated", "plan_of_another_problem", "gpu_failed", "time_lowered")
    data = copy.deepcopy(case.plan.model_dump())
    for name in several:
        assert MUTATIONS[name](data, case, rng) is not False
    found = {diagnostic.code for diagnostic in audit(case.problem, case.fabric, case.architectures, PlanDocument.model_validate(data))}
    expected = {"PRICE_MISMATCH", "WEIGHTS_MISMATCH", "GAP_MISMATCH", "PLAN_OF_ANOTHER_PROBLEM", "GPU_FAILED", "TIME_MISMATCH"}
    assert expected <= found
    assert mutate(case, "gpu_failed", rng) is not None

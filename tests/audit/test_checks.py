"""Each check in pairs: right plans pass it, and a plan that breaks only its rule is refused by it with the code to expect."""

from __future__ import annotations

import copy
import random

import pytest

from planner.audit.case import Case
from planner.audit.checks import CHECKS
from planner.plan.document import PlanDocument
from tests.audit.mutations import mutate
from tests.audit.scenarios import cases

RUN = {check.name: check.run for check in CHECKS}
CASES = {case.name: case for case in cases()}

PAIRS = (
    ("document", "mixed-fleet", "figure_not_a_number", "FIGURE_NOT_VALID"),
    ("document", "mixed-fleet", "figure_negative", "FIGURE_NOT_VALID"),
    ("document", "mixed-fleet", "deployment_left_out", "DEPLOYMENT_MISSING"),
    ("document", "mixed-fleet", "deployment_renamed", "DEPLOYMENT_UNKNOWN"),
    ("document", "bridged-pairs", "deployment_listed_twice", "DEPLOYMENT_TWICE"),
    ("document", "bridged-pairs", "model_replaced", "MODEL_MISMATCH"),
    ("document", "bridged-pairs", "engine_replaced", "ENGINE_MISMATCH"),
    ("document", "bridged-pairs", "plan_of_another_problem", "PLAN_OF_ANOTHER_PROBLEM"),
    ("document", "bridged-pairs", "status_not_honest", "STATUS_NOT_HONEST"),
    ("occupancy", "dense-one-domain", "gpu_used_twice", "GPU_USED_TWICE"),
    ("occupancy", "dense-one-domain", "gpu_taken", "GPU_TAKEN"),
    ("occupancy", "dense-one-domain", "gpu_failed", "GPU_FAILED"),
    ("occupancy", "dense-one-domain", "node_unknown", "NODE_UNKNOWN"),
    ("occupancy", "dense-one-domain", "gpu_index_out_of_range", "GPU_UNKNOWN"),
    ("occupancy", "mixed-fleet", "gpu_of_wrong_type", "GPU_TYPE_MISMATCH"),
    ("occupancy", "mixed-fleet", "rank_left_out", "GPU_COUNT_MISMATCH"),
    ("degrees", "dense-one-domain", "pp_degree_changed", "PARTITION_MISMATCH"),
    ("degrees", "moe-expert-parallel", "ep_degree_changed", "EP_DOES_NOT_DIVIDE_STAGE"),
    ("degrees", "dense-pipeline-across-nodes", "layers_lost", "PARTITION_MISMATCH"),
    ("degrees", "dense-pipeline-across-nodes", "stage_without_layers", "PARTITION_MISMATCH"),
    ("degrees", "nvl72-rack", "batch_not_positive", "BATCH_NOT_POSITIVE"),
    ("locality", "dense-one-domain", "rank_numbers_changed", "RANK_NUMBERING"),
    ("locality", "dense-one-domain", "domain_misnamed", "DOMAIN_MISMATCH"),
    ("locality", "moe-expert-parallel", "tp_rank_moved_to_another_domain", "CROSS_NODE_TP"),
    ("locality", "dense-pipeline-across-nodes", "gpus_of_two_stages_swapped", "CROSS_NODE_TP"),
    ("locality", "dense-pipeline-across-nodes", "gpus_of_two_stages_swapped", "NVLINK_REQUIRED"),
    ("locality", "dense-pipeline-across-nodes", "locality_claimed_nearer", "LOCALITY_MISMATCH"),
    ("locality", "bridged-pairs", "locality_unknown", "LOCALITY_MISMATCH"),
    ("memory", "dense-one-domain", "batch_raised", "KV_DOES_NOT_FIT"),
    ("memory", "dense-one-domain", "weights_lowered", "WEIGHTS_MISMATCH"),
    ("memory", "dense-one-domain", "kv_cache_lowered", "KV_MISMATCH"),
    ("memory", "dense-one-domain", "memory_besides_forgotten", "OTHER_TOO_LOW"),
    ("memory", "dense-one-domain", "memory_budget_raised", "MEMORY_BUDGET_MISMATCH"),
    ("memory", "dense-one-domain", "free_memory_overstated", "SUM_MISMATCH"),
    ("memory", "dense-one-domain", "most_sequences_overstated", "MAX_SEQUENCES_MISMATCH"),
    ("memory", "dense-one-domain", "most_sequences_below_batch", "BATCH_ABOVE_MEMORY"),
    ("memory", "dense-one-domain", "fullest_stage_unknown", "STAGE_UNKNOWN"),
    ("times", "dense-one-domain", "time_lowered", "TIME_MISMATCH"),
    ("times", "dense-one-domain", "throughput_raised", "TIME_MISMATCH"),
    ("times", "dense-one-domain", "number_format_changed", "PRECISION_NOT_ALLOWED"),
    ("load", "dense-one-domain", "replica_dropped", "LOAD_NOT_COVERED"),
    ("load", "dense-one-domain", "load_lowered", "LOAD_MISMATCH"),
    ("load", "dense-one-domain", "capacity_raised", "CAPACITY_MISMATCH"),
    ("billing", "mixed-fleet", "price_of_replica_lowered", "PRICE_MISMATCH"),
    ("billing", "mixed-fleet", "all_prices_lowered", "PRICE_MISMATCH"),
    ("billing", "mixed-fleet", "deployment_price_left_out", "PRICE_MISMATCH"),
    ("billing", "mixed-fleet", "currency_changed", "CURRENCY_MISMATCH"),
    ("budget", "dense-one-domain", "replica_duplicated", "BUDGET_EXCEEDED"),
    ("budget", "dense-one-domain", "replica_duplicated", "GPU_BUDGET_EXCEEDED"),
    ("money", "mixed-fleet", "cost_per_token_lowered", "COST_PER_TOKEN_MISMATCH"),
    ("objective", "mixed-fleet", "objective_value_lowered", "OBJECTIVE_MISMATCH"),
    ("objective", "mixed-fleet", "gap_misstated", "GAP_MISMATCH"),
    ("objective", "mixed-fleet", "gap_understated", "GAP_MISMATCH"),
    ("objective", "mixed-fleet", "bound_beyond_value", "BOUND_NOT_VALID"),
    ("objective", "mixed-fleet", "optimal_with_a_gap", "STATUS_NOT_HONEST"),
    ("objective", "mixed-fleet", "optimal_though_stopped", "STATUS_NOT_HONEST"),
    ("objective", "throughput-of-a-hybrid", "bound_beyond_value", "BOUND_NOT_VALID"),
    ("objective", "mixed-fleet", "gpus_miscounted", "SUM_MISMATCH"),
)


def codes(name, case, plan, problem=None):
    """Codes one check reports."""
    looked_at = Case(problem or case.problem, case.fabric, case.architectures, plan)
    return {diagnostic.code for diagnostic in RUN[name](looked_at)}


@pytest.mark.parametrize(("check", "scenario", "mutation", "code"), PAIRS, ids=[f"{pair[0]}-{pair[2]}-{pair[3]}" for pair in PAIRS])
def test_pair(check, scenario, mutation, code):
    case = CASES[scenario]
    assert codes(check, case, case.plan) == set()
    # A mutation draws what it changes; some draw is the one that this check is to find.
    found = set()
    for seed in range(20):
        plan = mutate(case, mutation, random.Random(seed))
        found |= codes(check, case, plan) if plan is not None else set()
    assert code in found


@pytest.mark.parametrize("check", sorted(RUN))
@pytest.mark.parametrize("scenario", sorted(CASES))
def test_right_plans_pass_every_check(check, scenario):
    case = CASES[scenario]
    assert codes(check, case, case.plan) == set()


def asked_otherwise(case, **changes):
    """The case's problem with one deployment asking for something else."""
    first, *rest = case.problem.deployments
    return case.problem.model_copy(update={"deployments": (type(first).model_validate({**first.model_dump(), **changes}), *rest)})


@pytest.mark.parametrize(
    ("check", "scenario", "changes", "code"),
    [
        ("replicas", "dense-one-domain", {"replicas": {"min": 3}}, "TOO_FEW_REPLICAS"),
        ("replicas", "dense-one-domain", {"replicas": {"max": 1}}, "TOO_MANY_REPLICAS"),
        ("replicas", "mixed-fleet", {"replicas": {"one_shape": True}}, "SHAPES_DIFFER"),
        ("degrees", "dense-one-domain", {"parallelism": {"tp": [2, 8]}}, "DEGREE_NOT_ALLOWED"),
        ("degrees", "dense-one-domain", {"parallelism": {"pp": 2}}, "DEGREE_NOT_ALLOWED"),
        ("times", "dense-one-domain", {"slo": {"tpot": "1ms"}}, "TPOT_MISSED"),
        ("times", "dense-one-domain", {"slo": {"ttft": "1ms"}}, "TTFT_MISSED"),
        ("times", "dense-one-domain", {"min_efficiency": 0.999}, "EFFICIENCY_TOO_LOW"),
        ("load", "dense-one-domain", {"headroom": 0.5}, "LOAD_NOT_COVERED"),
        ("locality", "bridged-pairs", {"require_nvlink": True}, "NVLINK_REQUIRED"),
        ("memory", "dense-one-domain", {"memory": {"gpu_memory_utilization": 0.3}}, "WEIGHTS_DO_NOT_FIT"),
    ],
)
def test_a_harder_question_is_not_answered_by_the_same_plan(check, scenario, changes, code):
    case = CASES[scenario]
    assert codes(check, case, case.plan) == set()
    assert code in codes(check, case, case.plan, asked_otherwise(case, **changes))


@pytest.mark.parametrize(
    ("scenario", "change", "code"),
    [
        ("dense-one-domain", {"tp": 3}, "HEADS_NOT_DIVISIBLE"),
        ("dense-one-domain", {"tp": 12}, "KV_HEADS_NOT_DIVISIBLE"),
        ("dense-one-domain", {"tp": 128}, "HEADS_NOT_DIVISIBLE"),
        ("dense-one-domain", {"tp": 4, "ep": 4}, "NO_EXPERTS"),
        ("dense-one-domain", {"tp": 2, "dp": 2}, "ATTENTION_DP_NEEDS_EXPERTS"),
        ("moe-expert-parallel", {"tp": 6, "ep": 6}, "EXPERTS_NOT_DIVISIBLE"),
        ("moe-expert-parallel", {"tp": 8, "ep": 4}, "EP_LAYOUT_NOT_SUPPORTED"),
        ("latent-attention-data-parallel", {"tp": 32, "ep": 1, "dp": 1}, "QUANT_BLOCK_NOT_DIVISIBLE"),
        ("nvl72-rack", {"tp": 2, "dp": 4, "ep": 8}, "ATTENTION_DP_LAYOUT"),
        ("throughput-of-a-hybrid", {"tp": 16}, "MAMBA_GROUPS_NOT_DIVISIBLE"),
    ],
)
def test_illegal_degrees_are_refused(scenario, change, code):
    case = CASES[scenario]
    data = copy.deepcopy(case.plan.model_dump())
    data["deployments"][0]["replicas"][0]["shape"].update(change)
    assert code in codes("legality", case, PlanDocument.model_validate(data))

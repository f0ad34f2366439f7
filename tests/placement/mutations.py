"""Ways to break a legal placement, each with the code it must be reported under; `part` names what it touches, so that several can be combined."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """One way to break the fleet's placement."""

    code: str
    part: str
    break_it: object


def _big(placement):
    return placement["deployments"][0]


def _rank(index, value):
    def change(random, problem, placement):
        _big(placement)["ranks"][index] = value(random)

    return change


def _used_twice(random, problem, placement):
    ranks = _big(placement)["ranks"]
    ranks[1] = ranks[0]


def _other_deployments_gpu(random, problem, placement):
    placement["deployments"][1]["replicas"][1] = list(_big(placement)["ranks"][-1:])


def _lost_rank(random, problem, placement):
    _big(placement)["ranks"].pop(random.randrange(3, 12))


def _swapped_stages(random, problem, placement):
    ranks = _big(placement)["ranks"]
    first, second = random.randrange(4, 8), random.randrange(12, 16)
    ranks[first], ranks[second] = ranks[second], ranks[first]


def _degree(name, key, value):
    def change(random, problem, placement):
        part = next(item for item in placement["deployments"] if item["name"] == name)
        part[key] = value(random)

    return change


def _partition(random, problem, placement):
    _big(placement)["partition"] = random.choice([[60, 60], [126, 0], [63, 64], [42, 42, 42]])


def _slo(random, problem, placement):
    problem["deployments"][0]["slo"]["tpot"] = f"{random.randrange(5, 15)}ms"


def _first_token(random, problem, placement):
    problem["deployments"][0]["slo"]["ttft"] = f"{random.randrange(5, 50)}ms"


def _efficiency(random, problem, placement):
    problem["deployments"][0]["min_efficiency"] = "99%"


def _load(random, problem, placement):
    problem["deployments"][1]["workload"]["concurrency"] = random.randrange(100_000, 200_000)


def _one_replica(random, problem, placement):
    placement["deployments"][1]["replicas"].pop()


def _budget(random, problem, placement):
    problem["budget"]["per_hour"] = f"${random.randrange(5, 40)}/h"


def _unasked(random, problem, placement):
    placement["deployments"][2]["name"] = "nobody"


def _not_allowed(random, problem, placement):
    problem["deployments"][2]["parallelism"] = {"tp": [1, 4]}


MUTATIONS = (
    Mutation("GPU_USED_TWICE", "rank 1", _used_twice),
    Mutation("GPU_USED_TWICE", "small", _other_deployments_gpu),
    Mutation("GPU_TAKEN", "rank 2", _rank(2, lambda _: "n4:7")),
    Mutation("GPU_FAILED", "rank 3", _rank(3, lambda _: "n4:6")),
    Mutation("NODE_UNKNOWN", "rank 8", _rank(8, lambda random: f"n{random.randrange(50, 99)}:0")),
    Mutation("GPU_UNKNOWN", "rank 9", _rank(9, lambda random: f"n2:{random.randrange(8, 90)}")),
    Mutation("HETEROGENEOUS_TP", "rank 10", _rank(10, lambda random: f"a1:{random.randrange(8)}")),
    Mutation("GPU_COUNT_MISMATCH", "length", _lost_rank),
    Mutation("CROSS_NODE_TP", "order", _swapped_stages),
    Mutation("HEADS_NOT_DIVISIBLE", "experts", _degree("experts", "tp", lambda random: random.choice([3, 5, 6, 7]))),
    Mutation("EXPERTS_NOT_DIVISIBLE", "experts", _degree("experts", "ep", lambda random: random.choice([3, 5, 6, 7]))),
    Mutation("DEGREE_NOT_ALLOWED", "experts", _not_allowed),
    Mutation("PARTITION_MISMATCH", "big shape", _partition),
    Mutation("PP_EXCEEDS_LAYERS", "small", _degree("small", "pp", lambda random: random.randrange(33, 90))),
    Mutation("CONTEXT_TOO_LONG", "big context", _degree("big", "max_model_len", lambda random: random.choice([100, 2559, 1_000_000]))),
    Mutation("KV_DOES_NOT_FIT", "big shape", _degree("big", "batch", lambda random: random.randrange(900, 1024))),
    Mutation("BATCH_ABOVE_ENGINE", "small", _degree("small", "batch", lambda random: random.randrange(1025, 5000))),
    Mutation("WEIGHTS_DO_NOT_FIT", "big shape", _degree("big", "gpu_memory_utilization", lambda random: random.uniform(0.2, 0.5))),
    Mutation("TPOT_MISSED", "tpot", _slo),
    Mutation("TTFT_MISSED", "ttft", _first_token),
    Mutation("EFFICIENCY_TOO_LOW", "efficiency", _efficiency),
    Mutation("LOAD_NOT_COVERED", "small", _load),
    Mutation("TOO_FEW_REPLICAS", "small", _one_replica),
    Mutation("BUDGET_EXCEEDED", "budget", _budget),
    Mutation("DEPLOYMENT_UNKNOWN", "experts", _unasked),
)
# A mutation of the first cannot show beside one of the second: no times are told of layers that are no layout, no price of unknown nodes.
HIDDEN = {
    "TPOT_MISSED": {"PARTITION_MISMATCH", "GPU_COUNT_MISMATCH"},
    "TTFT_MISSED": {"PARTITION_MISMATCH", "GPU_COUNT_MISMATCH"},
    "EFFICIENCY_TOO_LOW": {"PARTITION_MISMATCH", "GPU_COUNT_MISMATCH"},
    "BUDGET_EXCEEDED": {"NODE_UNKNOWN", "GPU_UNKNOWN"},
}


def compatible(chosen, mutation):
    """Whether a mutation can be seen beside those chosen already."""
    codes = {one.code for one in chosen}
    hidden = HIDDEN.get(mutation.code, set()) & codes or any(mutation.code in HIDDEN.get(code, set()) for code in codes)
    touched = {one.part for one in chosen}
    order = mutation.part == "length" and any(part.startswith(("rank", "order")) for part in touched)
    order = order or ("length" in touched and mutation.part.startswith(("rank", "order")))
    return mutation.part not in touched and not hidden and not order

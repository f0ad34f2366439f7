"""Ways to make a right plan wrong, each a small lie or slip that an answer could contain.

A mutation edits the plan as plain data in place and returns whether it applied; what it leaves must be a wrong plan.
"""

from __future__ import annotations

import copy
import math

from planner.plan.document import PlanDocument

MUTATIONS = {}


def mutation(function):
    """Register a mutation under its own name."""
    MUTATIONS[function.__name__] = function
    return function


def mutate(case, name, rng):
    """The plan of `case` after one mutation, or None where it does not apply."""
    data = copy.deepcopy(case.plan.model_dump())
    return PlanDocument.model_validate(data) if MUTATIONS[name](data, case, rng) is not False else None


def replicas(data):
    """All replicas with their deployments."""
    return [(deployment, replica) for deployment in data["deployments"] for replica in deployment["replicas"]]


def pick(data, rng, allowed=lambda _: True):
    """A random replica with its deployment, among those allowed."""
    found = [pair for pair in replicas(data) if allowed(pair[1])]
    return rng.choice(found) if found else (None, None)


def spots(case, state=None, away_from=None, used=()):
    """GPUs in a state, outside one scope and not used: (node, gpu, domain)."""
    scopes = case.fabric.scopes
    names = {scope: scopes.name(scope) for scope in range(len(scopes)) if scopes.name(scope) != away_from}
    return [
        (gpu.node, gpu.gpu, name)
        for scope, name in names.items()
        for gpu in scopes.gpus(scope)
        if case.fabric.state(gpu) == state and (gpu.node, gpu.gpu) not in used
    ]


def put(rank, spot):
    """Move a rank to a GPU, domain name included."""
    rank["node"], rank["gpu"], rank["domain"] = spot


def in_use(data):
    """GPUs the plan uses."""
    return {(rank["node"], rank["gpu"]) for _, replica in replicas(data) for rank in replica["ranks"]}


@mutation
def tp_rank_moved_to_another_domain(data, case, rng):
    _, replica = pick(data, rng, lambda replica: replica["shape"]["tp"] > 1)
    if replica is None:
        return False
    rank = rng.choice(replica["ranks"])
    free = spots(case, "free", rank["domain"], in_use(data))
    return bool(free) and put(rank, rng.choice(free))


@mutation
def gpu_used_twice(data, case, rng):
    ranks = [rank for _, replica in replicas(data) for rank in replica["ranks"]]
    if len(ranks) < 2:
        return False
    first, second = rng.sample(ranks, 2)
    put(first, (second["node"], second["gpu"], second["domain"]))
    return None


@mutation
def gpu_taken(data, case, rng):
    return _moved_to_state(data, case, rng, "taken")


@mutation
def gpu_failed(data, case, rng):
    return _moved_to_state(data, case, rng, "failed")


def _moved_to_state(data, case, rng, state):
    _, replica = pick(data, rng)
    found = spots(case, state)
    return bool(found) and put(rng.choice(replica["ranks"]), rng.choice(found))


@mutation
def node_unknown(data, case, rng):
    _, replica = pick(data, rng)
    rng.choice(replica["ranks"])["node"] = rng.choice(["h100-99", "", "nobody"])


@mutation
def gpu_index_out_of_range(data, case, rng):
    _, replica = pick(data, rng)
    rng.choice(replica["ranks"])["gpu"] = rng.choice([-1, 8, 99, 2**70])


@mutation
def gpu_of_wrong_type(data, case, rng):
    _, replica = pick(data, rng)
    others = {pool.gpu.name for pool in case.fabric.pools} | {"b200-180gb"}
    replica["shape"]["gpu"] = rng.choice(sorted(others - {replica["shape"]["gpu"]}))


@mutation
def rank_left_out(data, case, rng):
    _, replica = pick(data, rng)
    replica["ranks"] = replica["ranks"][:-1]
    data["gpus_used"] -= 1


@mutation
def tp_degree_changed(data, case, rng):
    _, replica = pick(data, rng)
    replica["shape"]["tp"] = rng.choice([value for value in (-1, 0, 3, 5, 7, 2 * replica["shape"]["tp"], 2**66) if value])


@mutation
def pp_degree_changed(data, case, rng):
    _, replica = pick(data, rng)
    replica["shape"]["pp"] += rng.choice([1, 2, -replica["shape"]["pp"]])


@mutation
def ep_degree_changed(data, case, rng):
    _, replica = pick(data, rng)
    replica["shape"]["ep"] = rng.choice([0, 3, 5, 7, 3 * replica["shape"]["ep"]])


@mutation
def dp_degree_changed(data, case, rng):
    _, replica = pick(data, rng)
    replica["shape"]["dp"] += rng.choice([1, 3, -replica["shape"]["dp"]])


@mutation
def stages_of_two_ranks_swapped(data, case, rng):
    _, replica = pick(data, rng, lambda replica: replica["shape"]["pp"] > 1)
    if replica is None:
        return False
    first, second = replica["ranks"][0], replica["ranks"][-1]
    first["stage"], second["stage"] = second["stage"], first["stage"]
    return None


@mutation
def gpus_of_two_stages_swapped(data, case, rng):
    _, replica = pick(data, rng, lambda replica: replica["shape"]["pp"] > 1 and replica["shape"]["tp"] > 1)
    if replica is None:
        return False
    first, second = replica["ranks"][0], replica["ranks"][-1]
    if first["domain"] == second["domain"]:
        return False
    spot = first["node"], first["gpu"], first["domain"]
    put(first, (second["node"], second["gpu"], second["domain"]))
    put(second, spot)
    return None


@mutation
def rank_numbers_changed(data, case, rng):
    _, replica = pick(data, rng)
    rng.choice(replica["ranks"])[rng.choice(["rank", "stage", "tp_rank", "dp_rank", "ep_rank"])] += rng.choice([-1, 1, 2**40])


@mutation
def domain_misnamed(data, case, rng):
    _, replica = pick(data, rng)
    rank = rng.choice(replica["ranks"])
    rank["domain"] = rng.choice([name for name in ("elsewhere", case.fabric.scopes.name(0), "") if name != rank["domain"]])


@mutation
def locality_claimed_nearer(data, case, rng):
    _, replica = pick(data, rng, lambda replica: len(replica["ranks"]) > 1)
    if replica is None:
        return False
    replica["shape"]["locality"] = "gpu"
    if len({rank["domain"] for rank in replica["ranks"]}) > 1 and rng.random() < 0.5:
        replica["shape"]["locality"] = case.fabric.pool(replica["ranks"][0]["node"]).scale_up_level
    return None


@mutation
def locality_unknown(data, case, rng):
    _, replica = pick(data, rng)
    replica["shape"]["locality"] = rng.choice(["rack", "", "mesh"])


@mutation
def price_of_replica_lowered(data, case, rng):
    _, replica = pick(data, rng)
    replica["price_per_hour"] *= rng.choice([0.5, 0.999])


@mutation
def all_prices_lowered(data, case, rng):
    factor = rng.choice([0.5, 0.99])
    for deployment in data["deployments"]:
        for part in (deployment, *deployment["replicas"]):
            part["price_per_hour"] *= factor
            part["usd_per_million_output_tokens"] *= factor
    data["cost_per_hour"] *= factor
    if data["objective"]["name"] == "cost":
        data["objective"]["value"] *= factor
        data["objective"]["bound"] *= factor


@mutation
def total_cost_lowered(data, case, rng):
    data["cost_per_hour"] -= rng.choice([1.0, 0.01])


@mutation
def deployment_price_left_out(data, case, rng):
    rng.choice(data["deployments"])["price_per_hour"] = None


@mutation
def cost_per_token_lowered(data, case, rng):
    deployment, replica = pick(data, rng)
    rng.choice([deployment, replica])["usd_per_million_output_tokens"] *= 0.99


@mutation
def batch_raised(data, case, rng):
    deployment, replica = pick(data, rng)
    shape = replica["shape"]
    shape["batch"] *= 50
    if deployment["load_unit"] == "concurrent sequences":
        replica["capacity"] = float(shape["batch"])
        deployment["capacity"] = math.fsum(other["capacity"] for other in deployment["replicas"])


@mutation
def batch_not_positive(data, case, rng):
    _, replica = pick(data, rng)
    replica["shape"]["batch"] = rng.choice([0, -1])


@mutation
def weights_lowered(data, case, rng):
    _, replica = pick(data, rng)
    _shift(replica["memory"], "weights_gib", rng.choice([0.0, 0.5, 0.95]))


@mutation
def kv_cache_lowered(data, case, rng):
    _, replica = pick(data, rng)
    _shift(replica["memory"], "kv_gib", rng.choice([0.0, 0.5, 0.95]))


@mutation
def memory_besides_forgotten(data, case, rng):
    _, replica = pick(data, rng)
    replica["memory"]["other_low_gib"] = 0.0
    _shift(replica["memory"], "other_gib", 0.0)


def _shift(memory, figure, factor):
    """Lower a figure and give the rest to the free memory, so that the sum still holds."""
    memory["free_gib"] += memory[figure] * (1 - factor)
    memory[figure] *= factor


@mutation
def memory_budget_raised(data, case, rng):
    _, replica = pick(data, rng)
    replica["memory"]["budget_gib"] *= 1.05
    replica["memory"]["free_gib"] += replica["memory"]["budget_gib"] * (1 - 1 / 1.05)


@mutation
def free_memory_overstated(data, case, rng):
    _, replica = pick(data, rng)
    replica["memory"]["free_gib"] += rng.choice([0.1, 5.0])


@mutation
def most_sequences_overstated(data, case, rng):
    _, replica = pick(data, rng)
    replica["memory"]["max_sequences"] = 10 * replica["memory"]["max_sequences"] + 100 * replica["shape"]["dp"]


@mutation
def most_sequences_below_batch(data, case, rng):
    _, replica = pick(data, rng)
    replica["memory"]["max_sequences"] = replica["shape"]["batch"] - 1


@mutation
def fullest_stage_unknown(data, case, rng):
    _, replica = pick(data, rng)
    replica["memory"]["stage"] = replica["shape"]["pp"] + rng.choice([0, 1])


@mutation
def time_lowered(data, case, rng):
    _, replica = pick(data, rng)
    figures = [name for name, value in replica["times"].items() if value > 1e-12]
    replica["times"][rng.choice(figures)] *= rng.choice([0.5, 0.9999, 1.01])


@mutation
def throughput_raised(data, case, rng):
    deployment, replica = pick(data, rng)
    replica["throughput_tokens_s"] *= 1.01
    if deployment["load_unit"] != "concurrent sequences":
        replica["capacity"] = replica["throughput_tokens_s"]


@mutation
def replica_dropped(data, case, rng):
    deployment, replica = pick(data, rng)
    left = [other for other in deployment["replicas"] if other is not replica]
    carried = math.fsum(other["capacity"] for other in left)
    if carried >= deployment["load"] * 0.999 or data["objective"]["name"] == "throughput":
        return False
    deployment["replicas"] = left
    deployment["capacity"] = carried
    deployment["price_per_hour"] -= replica["price_per_hour"]
    data["cost_per_hour"] -= replica["price_per_hour"]
    data["gpus_used"] -= len(replica["ranks"])
    return None


@mutation
def replica_duplicated(data, case, rng):
    deployment, replica = pick(data, rng)
    deployment["replicas"] = (*deployment["replicas"], copy.deepcopy(replica))
    deployment["capacity"] += replica["capacity"]
    deployment["price_per_hour"] += replica["price_per_hour"]
    data["cost_per_hour"] += replica["price_per_hour"]
    data["gpus_used"] += len(replica["ranks"])


@mutation
def deployment_left_out(data, case, rng):
    data["deployments"] = data["deployments"][1:]


@mutation
def deployment_renamed(data, case, rng):
    rng.choice(data["deployments"])["name"] = "somebody-else"


@mutation
def deployment_listed_twice(data, case, rng):
    data["deployments"] = (*data["deployments"], copy.deepcopy(data["deployments"][0]))


@mutation
def model_replaced(data, case, rng):
    rng.choice(data["deployments"])["model"] = "gpt2"


@mutation
def engine_replaced(data, case, rng):
    engine = rng.choice(data["deployments"])["engine"]
    engine["version"] = "0.1" if rng.random() < 0.5 else engine["version"]
    engine["name"] = "mlc" if engine["version"] != "0.1" else engine["name"]


@mutation
def load_lowered(data, case, rng):
    rng.choice(data["deployments"])["load"] *= 0.9


@mutation
def capacity_raised(data, case, rng):
    deployment, replica = pick(data, rng)
    replica["capacity"] *= 1.5
    deployment["capacity"] = math.fsum(other["capacity"] for other in deployment["replicas"])


@mutation
def load_unit_changed(data, case, rng):
    deployment = rng.choice(data["deployments"])
    deployment["load_unit"] = "requests/s"


@mutation
def number_format_changed(data, case, rng):
    _, replica = pick(data, rng)
    replica["shape"][rng.choice(["weights_dtype", "kv_dtype"])] = rng.choice(["int8", "fp32", ""])


@mutation
def layers_lost(data, case, rng):
    _, replica = pick(data, rng)
    first, *rest = replica["shape"]["partition"]
    replica["shape"]["partition"] = (first + rng.choice([-1, 1]), *rest)


@mutation
def stage_without_layers(data, case, rng):
    _, replica = pick(data, rng, lambda replica: replica["shape"]["pp"] > 1)
    if replica is None:
        return False
    first, second, *rest = replica["shape"]["partition"]
    replica["shape"]["partition"] = (0, first + second, *rest)
    return None


@mutation
def layers_moved_between_stages(data, case, rng):
    """A quarter of the fullest stage's layers move next door; its figures stay."""
    _, replica = pick(data, rng, lambda replica: replica["shape"]["pp"] > 1)
    if replica is None:
        return False
    partition, stage = list(replica["shape"]["partition"]), replica["memory"]["stage"]
    moved = -(-partition[stage] // 4)
    if moved == partition[stage]:
        return False
    partition[stage] -= moved
    partition[stage + 1 if stage + 1 < len(partition) else stage - 1] += moved
    replica["shape"]["partition"] = tuple(partition)
    return None


@mutation
def figure_not_a_number(data, case, rng):
    deployment, replica = pick(data, rng)
    part = rng.choice([replica["memory"], replica["times"], data["objective"], deployment, replica])
    names = sorted(name for name, value in part.items() if isinstance(value, float))
    part[rng.choice(names)] = rng.choice([math.nan, math.inf, -math.inf])


@mutation
def figure_negative(data, case, rng):
    deployment, replica = pick(data, rng)
    part = rng.choice([replica["memory"], replica["times"], data["objective"], deployment, replica])
    names = sorted(name for name, value in part.items() if isinstance(value, float) and value > 0 and name != "free_gib")
    part[rng.choice(names)] *= -1


@mutation
def gap_understated(data, case, rng):
    data["status"] = "feasible"
    data["objective"]["bound"] *= 0.9 if data["objective"]["name"] != "throughput" else 1.1


@mutation
def gap_misstated(data, case, rng):
    data["objective"]["gap"] = rng.choice([0.01, 0.5, -0.1])


@mutation
def bound_beyond_value(data, case, rng):
    objective = data["objective"]
    objective["bound"] *= 1.1 if objective["name"] != "throughput" else 0.9
    objective["gap"] = abs(objective["value"] - objective["bound"]) / objective["value"]
    data["status"] = "feasible"


@mutation
def optimal_with_a_gap(data, case, rng):
    objective = data["objective"]
    objective["bound"] *= 0.99 if objective["name"] != "throughput" else 1.01
    objective["gap"] = abs(objective["value"] - objective["bound"]) / objective["value"]


@mutation
def objective_value_lowered(data, case, rng):
    data["objective"]["value"] *= 0.9
    data["objective"]["bound"] = data["objective"]["value"]


@mutation
def objective_left_out(data, case, rng):
    data["objective"] = None


@mutation
def objective_of_another_name(data, case, rng):
    names = ["cost", "gpus", "latency", "throughput"]
    names.remove(data["objective"]["name"])
    data["objective"]["name"] = rng.choice(names)


@mutation
def status_not_honest(data, case, rng):
    data["status"] = rng.choice(["infeasible", "unknown"])


@mutation
def optimal_though_stopped(data, case, rng):
    data["stopped_by"] = "time"


@mutation
def gpus_miscounted(data, case, rng):
    data[rng.choice(["gpus_used", "gpus_total"])] += rng.choice([-1, 1])


@mutation
def currency_changed(data, case, rng):
    data["currency"] = "GBP"


@mutation
def plan_of_another_problem(data, case, rng):
    data["problem"] = "another"

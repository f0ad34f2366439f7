"""Mutations of what is served, of shapes, and of the plan as a whole."""

from __future__ import annotations

import copy
import math

from tests.audit.edits import mutation, pick


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
    deployment["load_unit"] = "output tokens/s" if deployment["load_unit"] == "requests/s" else "requests/s"


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

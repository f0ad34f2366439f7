"""Mutations of prices, memory and times."""

from __future__ import annotations

import math

from tests.audit.edits import mutation, pick


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

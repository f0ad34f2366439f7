"""Mutations of where ranks are and how a replica is cut."""

from __future__ import annotations

from tests.audit.edits import in_use, mutation, pick, put, replicas, spots


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

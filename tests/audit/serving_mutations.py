"""Mutations of what a plan says so that it can be started."""

from __future__ import annotations

import copy

from tests.audit.edits import mutation, pick


def another(value, rng):
    """A value of the same type that is not this one."""
    if isinstance(value, bool | str):
        return f"{value}x"
    if isinstance(value, int):
        return value + rng.choice([1, value + 7, -1 if value > 0 else 2])
    if isinstance(value, float):
        return value * rng.choice([0.5, 0.999, 1.05])
    if isinstance(value, tuple | list):
        return (*value, 7) if 7 not in value else tuple(value)[:-1]
    return "fp8"


def altered(part, rng, *names):
    """Change one of these keys."""
    name = rng.choice(names or sorted(part))
    part[name] = another(part[name], rng)


@mutation
def limit_changed(data, case, rng):
    _, replica = pick(data, rng, lambda replica: replica["limits"] is not None)
    altered(replica["limits"], rng)


@mutation
def checkpoint_changed(data, case, rng):
    altered(rng.choice(data["deployments"])["checkpoint"], rng)


@mutation
def longest_request_changed(data, case, rng):
    altered(rng.choice(data["deployments"]), rng, "request_tokens")


@mutation
def node_told_otherwise(data, case, rng):
    altered(rng.choice(data["nodes"]), rng)


@mutation
def node_of_a_replica_left_out(data, case, rng):
    nodes = list(data["nodes"])
    nodes.pop(rng.randrange(len(nodes)))
    data["nodes"] = tuple(nodes)
    return bool(nodes)


@mutation
def node_listed_twice(data, case, rng):
    data["nodes"] = (*data["nodes"], copy.deepcopy(rng.choice(data["nodes"])))


@mutation
def node_without_replicas_listed(data, case, rng):
    listed = {node["name"] for node in data["nodes"]}
    idle = [name for name in case.fabric.nodes if name not in listed]
    if not idle:
        return False
    data["nodes"] = (*data["nodes"], {**rng.choice(data["nodes"]), "name": rng.choice(idle)})
    return None

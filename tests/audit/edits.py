"""What mutations are made of: their register, and the ways they pick and move parts of a plan.

A mutation edits the plan as plain data in place and returns False where it does not apply; what it leaves must be a wrong plan.
"""

from __future__ import annotations

MUTATIONS = {}


def mutation(function):
    """Register a mutation under its own name."""
    MUTATIONS[function.__name__] = function
    return function


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

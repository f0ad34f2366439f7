"""Upper bounds on the number of replicas of every shape: what the pools hold, and what the loads could need."""

from __future__ import annotations

from planner.solve.instance import Instance


def greatest_counts(instance: Instance) -> list[int]:
    """Upper bound of every n_s: what the pool holds, and what its load could need.

    A plan with more than max(`needed`, minimum) replicas of one shape can drop one and keep its rules, at no more cost, GPUs or time. That
    argument does not hold where the load served is to be greatest.
    """
    columns = instance.shapes
    bounds = []
    running: dict[int, int] = {}
    for seat in instance.seats:
        running[seat.source] = running.get(seat.source, 0) + len(seat.replicas)
    for shape in range(len(columns)):
        deployment = int(columns.deployment[shape])
        if instance.kept[shape]:
            least = instance.limits[deployment].maximum
            found = running[int(instance.source[shape])]
            bounds.append(found if least is None else min(found, least))
            continue
        bound = instance.pools[int(columns.pool[shape])].slots(int(columns.size[shape])) // int(columns.groups[shape])
        if instance.objective != "throughput" and columns.capacity[shape] > 0:
            bound = min(bound, max(_needed(instance, shape), instance.limits[deployment].minimum))
        if instance.spare[shape]:
            bounds.append(min(bound, instance.rules_of(deployment).spares))
            continue
        maximum = instance.limits[deployment].maximum
        bounds.append(bound if maximum is None else min(bound, maximum))
    return bounds


def _needed(instance: Instance, shape: int) -> int:
    """Most replicas of a shape in a plan from which no replica of it can be dropped.

    In such a plan each of them is needed for the load, so that there are at most ceil(load / q), or for what is left without a domain it
    does not touch, so that at most c = ceil(rest / q) do not touch that domain. The others all do; one of them is needed for another domain,
    which again at most c do not touch, and so on. A replica touches at most as many domains as it has GPUs (`reach`), so after
    reach + 1 domains nobody is left: at most (reach + 1) c replicas. When one GPU may fail, the largest replica may be lost, and rest + that
    much load is enough.
    """
    columns = instance.shapes
    deployment, capacity = int(columns.deployment[shape]), int(columns.capacity[shape])
    load = int(instance.loads[deployment])
    resilience, slicing = instance.rules_of(deployment).resilience, instance.slicing_of(deployment)
    if slicing is not None:
        # All slices of the buckets that it serves, at most.
        return -(-slicing.slices * sum(instance.served_buckets(shape).values()) // slicing.unit)
    if resilience is None:
        return -(-load // capacity)
    rest = rest_of(load, resilience.keep.numerator, resilience.keep.denominator)
    if resilience.kind == "gpu":
        largest = int(columns.capacity[instance.of_deployment(deployment)].max())
        return -(-max(load, rest + largest) // capacity)
    return max(-(-load // capacity), (_reach(instance, shape, resilience.kind) + 1) * -(-rest // capacity))


def rest_of(load: int, numerator: int, denominator: int) -> int:
    """Load that must still be served, rounded up."""
    return -(-load * numerator // denominator)


def _reach(instance: Instance, shape: int, kind: str) -> int:
    """Most failure domains that one replica can touch: one where its single group lies in a scope of one domain, else up to its GPUs."""
    columns = instance.shapes
    domains = instance.pools[int(columns.pool[shape])].domains[kind]
    per_group = max((len(set(nodes)) for nodes in domains), default=1)
    groups, size = int(columns.groups[shape]), int(columns.size[shape])
    return min(groups * min(size, per_group), len({label for nodes in domains for label in nodes}))

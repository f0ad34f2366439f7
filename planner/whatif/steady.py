"""Keep what runs where it runs: exchange nodes and GPUs that are alike so that a new plan moves as little as that allows.

A plan stays the same plan when two nodes change their parts in it, as long as they are alike: of one pool, with the same GPUs free, and, where a
replica spans nodes, on the same switches. Inside a node whose GPUs all meet in a switch, the GPUs are alike too. The formulation numbers
what is alike in its own order; here it is matched with what ran there before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from planner.plan.diff import Snapshot
from planner.plan.outcome import Outcome, RankPlace
from planner.plan.shape import Shape
from planner.problem.load import LoadedProblem

# Nodes left after exact matches are compared one with another; beyond this many pairs they keep the solver's order.
MOST_COMPARED: Final = 100_000

Kind = tuple[object, ...]


class Part(NamedTuple):
    """What one replica has on one node: the kind of replica, and which of its ranks."""

    kind: Kind
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Content:
    """What runs on one node: each part with its GPUs, in rank order. `spans` tells whether a replica of it runs on other nodes too."""

    parts: tuple[tuple[Part, tuple[int, ...]], ...]
    spans: bool = False

    @property
    def signature(self) -> tuple[Part, ...]:
        """Parts without their GPUs."""
        return tuple(sorted((part for part, _ in self.parts), key=repr))


NOTHING: Final = Content(())


def steady(outcome: Outcome, loaded: LoadedProblem, before: Snapshot) -> Outcome:
    """Rename alike nodes and GPUs in an outcome after what ran on them in `before`; cost, times and proof stay what they are."""
    if not outcome.replicas or _bound_to_nodes(loaded):
        return outcome
    old = _before(before)
    new = _content_of((_kind(loaded, replica.shape), ((rank.node, rank.gpu) for rank in replica.ranks)) for replica in outcome.replicas)
    node_of: dict[str, str] = {}
    taken: set[str] = set()
    for spans in (True, False):
        for nodes in _alike(loaded, same_switches=spans):
            contents = [node for node in nodes if node in new and new[node].spans == spans and node not in node_of]
            free = [node for node in nodes if node not in taken]
            matched = _matched(contents, free, old, new)
            node_of |= matched
            taken |= set(matched.values())
    return _renamed(outcome, loaded, node_of, old, new)


def _bound_to_nodes(loaded: LoadedProblem) -> bool:
    """Tell whether a deployment names nodes of its own; then no two are alike."""
    return any(getattr(deployment, key, None) for deployment in loaded.problem.deployments for key in ("pin", "forbid", "current"))


def _kind(loaded: LoadedProblem, shape: Shape) -> Kind:
    degrees = shape.degrees
    name = loaded.problem.deployments[shape.deployment].name
    numbers = (degrees.tensor_parallel, degrees.pipeline_parallel, degrees.expert_parallel, degrees.data_parallel)
    return (name, *numbers, shape.weights_dtype, shape.kv_dtype)


def _before(before: Snapshot) -> dict[str, Content]:
    found = []
    for replica in before.replicas:
        kind = (replica.deployment, replica.tp, replica.pp, replica.ep, replica.dp, replica.weights_dtype, replica.kv_dtype)
        places = [gpu.rpartition(":") for gpu in replica.ranks]
        found.append((kind, [(node, int(index)) for node, _, index in places]))
    return _content_of(found)


def _content_of(replicas: Iterable[tuple[Kind, Iterable[tuple[str, int]]]]) -> dict[str, Content]:
    parts: dict[str, list[tuple[Part, tuple[int, ...]]]] = defaultdict(list)
    spanning: set[str] = set()
    for kind, places in replicas:
        on_node: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for rank, (node, gpu) in enumerate(places):
            on_node[node].append((rank, gpu))
        for node, held in on_node.items():
            parts[node].append((Part(kind, tuple(rank for rank, _ in held)), tuple(gpu for _, gpu in held)))
        if len(on_node) > 1:
            spanning |= set(on_node)
    return {node: Content(tuple(held), node in spanning) for node, held in parts.items()}


def _alike(loaded: LoadedProblem, *, same_switches: bool) -> list[list[str]]:
    """Groups of nodes that may change places, in the order of the topology; a node that shares its scale-up scope has none like it."""
    fabric = loaded.fabric
    inventory = fabric.inventory
    apart = any(getattr(deployment, key, None) for deployment in loaded.problem.deployments for key in ("spread", "resilience"))
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for scope in range(len(fabric.scopes)):
        rows = fabric.scopes.rows(scope)
        for row in rows:
            state = inventory.state[int(inventory.first_gpu[row]) : int(inventory.first_gpu[row + 1])].tobytes()
            # What fails together must go on failing together, for deployments that are spread over it.
            fails = fabric.failure_domains(inventory.names[row]) if apart else {}
            domains = tuple(sorted((kind, name) for kind, name in fails.items() if kind != "node"))
            key: tuple[object, ...] = (int(fabric.pool_of_node[row]), state, domains)
            if len(rows) > 1:
                key = (*key, inventory.names[row])
            elif same_switches:
                key = (*key, int(inventory.leaf[row]), int(inventory.spine[row]), int(inventory.fabric[row]))
            groups[key].append(inventory.names[row])
    return list(groups.values())


def _matched(contents: list[str], free: list[str], old: Mapping[str, Content], new: Mapping[str, Content]) -> dict[str, str]:
    """New node of each content: where the same ran before, else where most of it did, else where nothing did."""
    left = dict.fromkeys(free)
    found: dict[str, str] = {}
    for exactly in (True, False):
        holders: dict[object, list[str]] = defaultdict(list)
        for node in left:
            content = old.get(node, NOTHING)
            holders[content if exactly else content.signature].append(node)
        for node in contents:
            held = holders[new[node] if exactly else new[node].signature]
            if node not in found and held:
                found[node] = held.pop(0)
                del left[found[node]]
    waiting = [node for node in contents if node not in found]
    if len(waiting) * len(left) <= MOST_COMPARED:
        targets = list(left)
        pairs = [
            (-_shared(new[node], old.get(target, NOTHING)), target in old, order, number)
            for order, node in enumerate(waiting)
            for number, target in enumerate(targets)
        ]
        for _, _, order, number in sorted(pairs):
            if waiting[order] not in found and targets[number] in left:
                found[waiting[order]] = targets[number]
                del left[targets[number]]
    rest = iter(sorted(left, key=lambda node: node in old))
    return found | {node: next(rest) for node in waiting if node not in found}


def _shared(new: Content, old: Content) -> int:
    """GPUs whose part ran there before."""
    common = Counter(part for part, _ in new.parts) & Counter(part for part, _ in old.parts)
    return sum(len(part.ranks) * count for part, count in common.items())


def _renamed(
    outcome: Outcome, loaded: LoadedProblem, node_of: Mapping[str, str], old: Mapping[str, Content], new: Mapping[str, Content]
) -> Outcome:
    fabric = loaded.fabric
    scopes: dict[str, str] = {}
    gpu_of: dict[str, dict[int, int]] = {}
    for node, content in new.items():
        target = node_of.get(node, node)
        scopes[node] = fabric.scopes.name(fabric.scope_of(target))
        gpu_of[node] = _gpus(loaded, target, content, old.get(target, NOTHING))

    def moved(rank: RankPlace) -> RankPlace:
        return replace(rank, node=node_of.get(rank.node, rank.node), gpu=gpu_of[rank.node][rank.gpu], scope=scopes[rank.node])

    return replace(outcome, replicas=tuple(replace(item, ranks=tuple(map(moved, item.ranks))) for item in outcome.replicas))


def _gpus(loaded: LoadedProblem, target: str, content: Content, before: Content) -> dict[int, int]:
    """New index of each GPU of a node: that of the same part before, where all GPUs of the node meet in one switch."""
    fabric = loaded.fabric
    wiring = fabric.pool(target).wiring
    same = {gpu: gpu for _, gpus in content.parts for gpu in gpus}
    if wiring.groups or wiring.direct:
        return same
    row = fabric.row(target)
    start, end = int(fabric.inventory.first_gpu[row]), int(fabric.inventory.first_gpu[row + 1])
    free = dict.fromkeys((fabric.inventory.state[start:end] == 0).nonzero()[0].tolist())
    holders: dict[Part, list[tuple[int, ...]]] = defaultdict(list)
    for part, gpus in before.parts:
        if all(gpu in free for gpu in gpus):
            holders[part].append(gpus)
    found: dict[int, int] = {}
    waiting: list[tuple[int, ...]] = []
    for part, gpus in content.parts:
        if holders[part]:
            places = holders[part].pop(0)
            found |= dict(zip(gpus, places, strict=True))
            for place in places:
                del free[place]
        else:
            waiting.append(gpus)
    for gpus in waiting:
        # Left as they are where that is possible, so that a node without a past keeps the solver's order.
        places = gpus if all(gpu in free for gpu in gpus) else tuple(list(free)[: len(gpus)])
        found |= dict(zip(gpus, places, strict=True))
        for place in places:
            del free[place]
    return found

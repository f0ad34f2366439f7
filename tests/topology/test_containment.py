"""Laws that hold for every cluster: levels contain one another, scopes partition the GPUs, order of description does not matter."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.fabric import Fabric
from planner.topology.graph import components_up_to

KINDS: tuple[dict[str, Any], ...] = (
    {"gpu": "h100-sxm-80gb", "gpus": 4},
    {"gpu": "a6000-48gb", "gpus": 4, "pairs": [[0, 2], [1, 3]]},
    {"gpu": "a6000-48gb", "gpus": 3, "pairs": [[0, 1]]},
    {"gpu": "l40s-48gb", "gpus": 2},
    {"gpu": "v100-sxm2-32gb", "gpus": 8},
    {"gpu": "mi300x-192gb", "gpus": 8},
    {"gpu": "gb200-186gb", "gpus": 4, "nvlink_domain": "rack-a"},
    {"gpu": "gb200-186gb", "gpus": 4, "nvlink_domain": "rack-b"},
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 5))):
        group = dict(draw(st.sampled_from(KINDS)))
        group["name"] = f"g{number}n[1-{draw(st.integers(1, 3))}]"
        if draw(st.booleans()) or "nvlink_domain" in group:
            group["nics"] = {"count": 2, "speed": "200Gb/s"}
            group["leaf"] = draw(st.lists(st.sampled_from(["l1", "l2", "l3", "l4"]), min_size=1, max_size=2, unique=True))
            if draw(st.booleans()):
                group["spine"] = draw(st.sampled_from(["s1", "s2"]))
        nodes.append(group)
    taken = [f"{group['name']}:{draw(st.integers(0, group['gpus'] - 1))}" for group in nodes if draw(st.booleans())]
    return {"name": "drawn", "nodes": nodes, "taken": taken, "fabric": {"kind": "infiniband", "oversubscription": draw(st.integers(1, 4))}}


def build(document: dict[str, Any]) -> Fabric:
    return build_fabric(TopologyDocument.model_validate(document))


@given(documents())
@settings(max_examples=60, deadline=None)
def test_a_component_lies_inside_one_of_the_next_level(document: dict[str, Any]) -> None:
    inventory = build(document).inventory
    for below, above in itertools.pairwise((inventory.scope, inventory.leaf, inventory.spine, inventory.fabric)):
        assert len(set(zip(below.tolist(), above.tolist(), strict=True))) == len(set(below.tolist()))


@given(documents())
@settings(max_examples=60, deadline=None)
def test_labels_are_the_components_of_the_expanded_graph(document: dict[str, Any]) -> None:
    found = build(document)
    for level, labels in (
        ("host", found.inventory.scope),
        ("leaf", found.inventory.leaf),
        ("spine", found.inventory.spine),
        ("fabric", found.inventory.fabric),
    ):
        by_graph = {vertex: number for number, component in enumerate(components_up_to(found.gpu_graph, level)) for vertex in component}
        pairs = {(by_graph[f"host/{node}"], label) for node, label in zip(found.nodes, labels.tolist(), strict=True)}
        assert len(pairs) == len({graph for graph, _ in pairs}) == len({label for _, label in pairs})


@given(documents())
@settings(max_examples=60, deadline=None)
def test_scopes_partition_the_gpus(document: dict[str, Any]) -> None:
    found = build(document)
    scopes = found.scopes
    gpus = [gpu for scope in range(len(scopes)) for gpu in scopes.gpus(scope)]
    assert len(gpus) == len(set(gpus)) == len(found.inventory.state) == scopes.capacity.sum()
    for scope in range(len(scopes)):
        free = scopes.free_gpus(scope)
        assert len(free) == scopes.free[scope]
        assert all(found.state(gpu) == "free" and found.scope_of(gpu.node) == scope for gpu in free)
        subs = scopes.sub_scopes(scope)
        assert not subs or sorted(itertools.chain.from_iterable(subs)) == sorted(free)
        pool = found.pools[int(scopes.pool[scope])]
        if len(subs) and len(subs[0]) > 1:
            assert found.level(subs[0]) == pool.wiring.level
        if len(free) > 1:
            assert pool.levels.index(found.level(free)) <= pool.levels.index(pool.scale_up_level)


@given(documents(), st.data())
@settings(max_examples=60, deadline=None)
def test_more_gpus_are_never_nearer_and_never_faster(document: dict[str, Any], data: st.DataObject) -> None:
    found = build(document)
    pool = data.draw(st.sampled_from(found.pools))
    scopes = [scope for scope in range(len(found.scopes)) if found.scopes.pool[scope] == pool.index]
    component = data.draw(st.sampled_from(sorted({int(found.scopes.fabric[scope]) for scope in scopes})))
    gpus = [gpu for scope in scopes if found.scopes.fabric[scope] == component for gpu in found.scopes.gpus(scope)]
    chosen = data.draw(st.permutations(gpus))
    few = data.draw(st.integers(1, len(chosen)))
    small, large = found.level(chosen[:few]), found.level(chosen)
    assert small in pool.levels
    assert pool.levels.index(small) <= pool.levels.index(large)
    assert found.path(chosen[:few]).peer_bandwidth >= found.path(chosen).peer_bandwidth
    # The pool's path is the worst case of its level.
    assert found.path(chosen).bandwidth >= pool.path(large).bandwidth or pool.wiring.direct


@given(documents(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_groups_changes_nothing(document: dict[str, Any], random: Any) -> None:
    one = build(document)
    shuffled = list(document["nodes"])
    random.shuffle(shuffled)
    other = build(document | {"nodes": shuffled})
    gpus = [gpu for scope in range(len(one.scopes)) for gpu in one.scopes.gpus(scope)]
    for pair in itertools.islice(itertools.combinations(gpus, 2), 200):
        if one.inventory.fabric[one.row(pair[0].node)] == one.inventory.fabric[one.row(pair[1].node)]:
            assert one.level(pair) == other.level(pair)
            assert one.path(pair) == other.path(pair)

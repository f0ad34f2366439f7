"""Check a placement by itself: right groups, free GPUs used once, parts, containers and counts kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planner.solve.instance import Container, Instance
from planner.solve.placement import Placed


def assert_placed(instance: Instance, placed: Sequence[Placed], counts: Sequence[int]) -> None:
    columns = instance.shapes
    assert Counter(replica.shape for replica in placed) == Counter({shape: count for shape, count in enumerate(counts) if count})
    used: set[tuple[int, int, int]] = set()
    for replica in placed:
        shape = replica.shape
        pool = instance.pools[int(columns.pool[shape])]
        assert len(replica.groups) == columns.groups[shape]
        for group in replica.groups:
            assert len(group.positions) == columns.size[shape]
            for position in group.positions:
                assert 0 <= position < pool.free[group.scope]
                key = (int(columns.pool[shape]), group.scope, position)
                assert key not in used
                used.add(key)
            if columns.within_part[shape]:
                parts = [part for part, count in enumerate(pool.parts[group.scope]) for _ in range(count)]
                assert len({parts[position] for position in group.positions}) == 1
        column = {
            Container.LEAF: pool.leaf,
            Container.SPINE: pool.spine,
            Container.FABRIC: pool.fabric,
        }.get(Container(int(columns.container[shape])))
        if column is not None:
            assert len({int(column[group.scope]) for group in replica.groups}) == 1


def nodes_opened(instance: Instance, placed: Sequence[Placed], pool: int) -> int:
    """Nodes of a pool that a placement uses."""
    scopes = instance.pools[pool]
    nodes = set()
    for replica in placed:
        if instance.shapes.pool[replica.shape] != pool:
            continue
        for group in replica.groups:
            owners = [0] * int(scopes.free[group.scope])
            if scopes.nodes:
                owners = [node for node, count in enumerate(scopes.nodes[group.scope]) for _ in range(count)]
            nodes |= {(group.scope, owners[position]) for position in group.positions}
    return len(nodes)

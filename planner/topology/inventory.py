"""Every node and GPU as numpy columns, with the component each node falls into at every level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.topology.groups import HostGroup
from planner.topology.levels import Components, Labels

FREE: Final = 0
TAKEN: Final = 1
FAILED: Final = 2
STATES: Final[tuple[str, ...]] = ("free", "taken", "failed")


class GpuId(NamedTuple):
    """One GPU: the name of its node and its index there, from 0."""

    node: str
    gpu: int

    def __str__(self) -> str:
        return f"{self.node}:{self.gpu}"


@dataclass(frozen=True, eq=False)
class Inventory:
    """Nodes and GPUs in the order of the document.

    Node columns [N]: `group` (index into `groups`), `scope`, `leaf`, `spine`, `fabric` (component numbers, counted from 0 in order of first
    appearance). `first_gpu` [N + 1] is where a node's GPUs start in `state` [G] (0 free, 1 taken, 2 failed). `index` maps a node's name to its row.
    `leaf_names` lists the leaf switches of every component at level leaf (empty for nodes without a network), `spine_names` likewise.
    """

    groups: tuple[HostGroup, ...]
    names: tuple[str, ...]
    index: dict[str, int]
    group: Labels
    first_gpu: Labels
    state: NDArray[np.int8]
    scope: Labels
    leaf: Labels
    spine: Labels
    fabric: Labels
    leaf_names: tuple[tuple[str, ...], ...]
    spine_names: tuple[tuple[str, ...], ...]

    def level_labels(self, level: str) -> Labels:
        """Component number of every node at leaf, spine or fabric, or its scale-up scope at domain and host [N]."""
        return {"domain": self.scope, "host": self.scope, "leaf": self.leaf, "spine": self.spine, "fabric": self.fabric}[level]


def first_rows(labels: Labels) -> Labels:
    """First row that bears each label, for labels from 0 to the largest; the number of rows where none does."""
    found = np.full(int(labels.max(initial=-1)) + 1, len(labels), dtype=np.int64)
    np.minimum.at(found, labels, np.arange(len(labels), dtype=np.int64))
    return found


def _first_appearance(labels: Labels) -> Labels:
    """Renumber labels from 0 in the order in which they first appear (`numpy.unique` would load `numpy.ma`, a tenth of a small run)."""
    first = first_rows(labels)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    renumbered: Labels = rank[labels]
    return renumbered


def _switch_names(labels: Labels, first: Labels, sizes: Labels, members: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Names of the switches of each component, in order of appearance, from the first node of every group."""
    found: list[dict[str, None]] = [{} for _ in range(int(labels.max()) + 1)] if len(labels) else []
    for group, names in enumerate(members):
        if sizes[group]:
            found[int(labels[first[group]])].update(dict.fromkeys(names))
    return tuple(tuple(names) for names in found)


def take_stock(groups: Sequence[HostGroup], state: NDArray[np.int8] | None = None) -> Inventory:
    """Number nodes, GPUs and components.

    Nodes of one group hang on the same switches, so components are found among groups, domains and switches, and spread over the nodes
    afterwards: the work grows with the number of groups and links between switches, not with that of GPUs. Nodes without a network are components of their own.
    """
    sizes = np.array([len(group.names) for group in groups], dtype=np.int64)
    names = tuple(name for group in groups for name in group.names)
    group_of = np.repeat(np.arange(len(groups), dtype=np.int64), sizes)
    first_node = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    gpus = np.repeat(np.array([group.wiring.gpus for group in groups], dtype=np.int64), sizes)
    first_gpu = np.concatenate(([0], np.cumsum(gpus))).astype(np.int64)

    components = Components(len(groups))
    vertices: dict[tuple[str, str], int] = {}

    def vertex(kind: str, name: str) -> int:
        key = (kind, name)
        if key not in vertices:
            vertices[key] = components.add()
        return vertices[key]

    def spread(*, together: Sequence[bool]) -> Labels:
        """Labels of nodes: those of their group where its nodes are joined with one another, else one each."""
        of_groups = components.labels(range(len(groups)))
        alone = len(groups) + np.arange(len(names), dtype=np.int64)
        return _first_appearance(np.where(np.asarray(together, dtype=bool)[group_of], of_groups[group_of], alone))

    in_domain = [group.nvlink_domain is not None for group in groups]
    for number, group in enumerate(groups):
        if group.nvlink_domain is not None:
            components.join(number, vertex("domain", group.nvlink_domain))
    scope = spread(together=in_domain)

    wired = [bool(group.leaves) for group in groups]
    # Leaves that one group has joined need not be joined again by the next on the same ones: its link to the first of them is enough.
    joined: set[tuple[str, ...]] = set()
    for number, group in enumerate(groups):
        if group.leaves:
            leaves = group.leaves[:1] if group.leaves in joined else group.leaves
            joined.add(group.leaves)
            components.join_all([number, *(vertex("leaf", leaf) for leaf in leaves)])
    leaf = spread(together=[a or b for a, b in zip(in_domain, wired, strict=True)])
    for leaves, spines in {(group.leaves, group.spines): None for group in groups if group.leaves and group.spines}:
        components.join_all([*(vertex("leaf", name) for name in leaves), *(vertex("spine", name) for name in spines)])
    spine = spread(together=[a or b for a, b in zip(in_domain, wired, strict=True)])
    networked = [group.nics is not None for group in groups]
    for island in dict.fromkeys(group.island for group in groups):
        components.join_all(number for number, has_nics in enumerate(networked) if has_nics and groups[number].island == island)
    fabric = spread(together=[a or b for a, b in zip(in_domain, networked, strict=True)])

    return Inventory(
        groups=tuple(groups),
        names=names,
        index={name: row for row, name in enumerate(names)},
        group=group_of,
        first_gpu=first_gpu,
        state=state if state is not None else np.zeros(int(first_gpu[-1]), dtype=np.int8),
        scope=scope,
        leaf=leaf,
        spine=spine,
        fabric=fabric,
        leaf_names=_switch_names(leaf, first_node, sizes, [group.leaves for group in groups]),
        spine_names=_switch_names(spine, first_node, sizes, [group.spines for group in groups]),
    )

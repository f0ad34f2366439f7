"""Document -> fabric: everything looked up, checked at once, numbered and pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.catalog.measured import NOTHING, Measurements
from planner.diagnostics import Diagnostic, Severity, raise_errors
from planner.topology.document import FabricDescription, TopologyDocument
from planner.topology.fabric import Fabric
from planner.topology.groups import HostGroup
from planner.topology.inventory import Inventory, take_stock
from planner.topology.levels import NETWORK, Labels
from planner.topology.occupancy import read_states
from planner.topology.paths import LinkPath
from planner.topology.pools import Pool, inside_path, leaf_ratio, network_path
from planner.topology.resolve import resolve


def build_fabric(document: TopologyDocument, measured: Measurements = NOTHING) -> Fabric:
    """Build the fabric a document describes, links and GPUs replaced by what was `measured` of them.

    Raises
    ------
    PlannerError
        With every fault of the document, each with its document path as place.
    """
    groups, sources, diagnostics = resolve(document)
    if measured is not NOTHING:
        groups = tuple(as_measured(group, measured) for group in groups)
    inventory = take_stock(groups)
    state, faults = read_states(sources, inventory)
    # With a group that could not be read, its nodes would only seem to be missing.
    raise_errors([*diagnostics, *(faults if len(groups) == len(sources.groups) else ())])
    network = sources.fabric
    inventory = replace(inventory, state=state)
    pools, pool_of_node = _pool(inventory, network)
    return Fabric(document.name, document.currency, inventory, pools, pool_of_node, network, (*diagnostics, *_price_notes(pools)))


def as_measured(group: HostGroup, measured: Measurements) -> HostGroup:
    """The group with its links and GPUs as somebody measured them; direct links of a mesh keep their widths."""
    wiring, nics = group.wiring, group.nics
    link = None if wiring.link is None else measured.link(wiring.link)
    return replace(
        group,
        gpu=measured.gpu(group.gpu),
        wiring=replace(wiring, link=link, pcie=measured.link(wiring.pcie)),
        nics=None if nics is None else replace(nics, link=measured.link(nics.link)),
    )


def _pool(inventory: Inventory, network: FabricDescription) -> tuple[tuple[Pool, ...], Labels]:
    likeness: dict[tuple[object, ...], int] = {}
    pool_of_group = np.array([likeness.setdefault(group.likeness(), len(likeness)) for group in inventory.groups], dtype=np.int64)
    pool_of_node = pool_of_group[inventory.group]
    gpus = np.diff(inventory.first_gpu)
    groups_of: list[list[HostGroup]] = [[] for _ in likeness]
    for group, pool in zip(inventory.groups, pool_of_group.tolist(), strict=True):
        groups_of[pool].append(group)
    pools: list[Pool] = []
    for index, members in enumerate(groups_of):
        rows = np.flatnonzero(pool_of_node == index)
        first = members[0]
        scale_up_level = "domain" if first.wiring.whole_host else "host"
        levels = _levels(inventory, rows, first, scale_up_level)
        per_scope = np.bincount(inventory.scope[rows], weights=gpus[rows])
        pools.append(
            Pool(
                index=index,
                gpu=first.gpu,
                gpus_per_node=first.wiring.gpus,
                nodes=len(rows),
                price_per_gpu=first.price.per_gpu,
                price_per_node=first.price.per_node,
                price_source=first.price.source,
                billing=first.price.billing,
                levels=levels,
                scale_up_level=scale_up_level,
                scope_size=int(per_scope.max()),
                paths=tuple(_path(level, members, network) for level in levels),
                wiring=first.wiring,
                nics=first.nics,
            )
        )
    return tuple(pools), pool_of_node


def _levels(inventory: Inventory, rows: Labels, first: HostGroup, scale_up_level: str) -> tuple[str, ...]:
    """Levels at which some of the pool's scopes are joined that were not joined before."""
    inside = ("gpu", first.wiring.level, scale_up_level) if first.wiring.level else ("gpu", scale_up_level)
    found = [level for level in inside if level]
    before = np.count_nonzero(np.bincount(inventory.scope[rows]))
    for level in NETWORK:
        now = np.count_nonzero(np.bincount(inventory.level_labels(level)[rows]))
        if now < before:
            found.append(level)
        before = now
    return tuple(found)


def _path(level: str, members: Sequence[HostGroup], network: FabricDescription) -> LinkPath:
    """Path of a pool's level, through the most oversubscribed of its leaves."""
    first = members[0]
    if level not in NETWORK:
        return inside_path(level, first)
    assert first.nics is not None
    worst = max(leaf_ratio(group.leaves, network) for group in members)
    return network_path(level, first, first.nics, worst, network)


def _price_notes(pools: Sequence[Pool]) -> list[Diagnostic]:
    return [
        Diagnostic(
            "PRICE_FROM_CATALOG",
            f"{pool.gpu.name} has no price in the topology; ${pool.price_per_gpu:.2f}/h a GPU is taken from the {pool.price_source}",
            "write price: on the nodes to use your own",
            Severity.NOTE,
        )
        for pool in pools
        if pool.price_per_gpu is not None and pool.price_source != "topology"
    ]

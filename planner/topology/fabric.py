"""The fabric: pools, scale-up scopes and the questions the other rooms ask about any set of GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from planner.diagnostics import Diagnostic, PlannerError
from planner.topology.document import FabricDescription
from planner.topology.inventory import STATES, GpuId, Inventory
from planner.topology.levels import NETWORK, Labels
from planner.topology.paths import LinkPath
from planner.topology.pools import Pool, group_path, leaf_ratio, network_path
from planner.topology.scopes import ScopeTable

if TYPE_CHECKING:
    import networkx as nx


__all__ = ["Fabric", "GpuId", "Pool", "ScopeTable"]


class Fabric:
    """A cluster as the planner sees it.

    `pools` are nodes alike, `scopes` the scale-up scopes, `inventory` the columns of nodes and GPUs behind both. `diagnostics` are notes and warnings met
    while building (never errors).
    """

    def __init__(
        self,
        name: str,
        currency: str,
        inventory: Inventory,
        pools: tuple[Pool, ...],
        pool_of_node: Labels,
        network: FabricDescription,
        diagnostics: tuple[Diagnostic, ...] = (),
    ) -> None:
        self.name = name
        self.currency = currency
        self.inventory = inventory
        self.pools = pools
        self.pool_of_node = pool_of_node
        self.network = network
        self.diagnostics = diagnostics
        self.scopes = ScopeTable(inventory, pool_of_node)

    def __repr__(self) -> str:
        return f"<Fabric {self.name}: {len(self.inventory.names)} nodes, {len(self.inventory.state)} GPUs, {len(self.pools)} pools>"

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all nodes in the order of the document."""
        return self.inventory.names

    @cached_property
    def graph(self) -> nx.Graph:
        """Switches and hosts as a networkx graph; every edge has level, link, kind, alpha [s], beta [s/B] and bandwidth [B/s]."""
        from planner.topology.graph import host_graph

        return host_graph(self)

    @cached_property
    def gpu_graph(self) -> nx.Graph:
        """The same graph with every GPU and NVSwitch domain in it, about 2 kB a GPU."""
        from planner.topology.graph import gpu_graph

        return gpu_graph(self)

    def row(self, node: str) -> int:
        """Row of a node in the inventory.

        Raises
        ------
        PlannerError
            UNKNOWN_NODE with the nearest names.
        """
        found = self.inventory.index.get(node)
        if found is None:
            raise PlannerError([self._unknown_node(node)])
        return found

    def _unknown_node(self, node: str) -> Diagnostic:
        from planner.catalog.nearest import nearest

        close = nearest(node, self.nodes[:10_000], limit=3)
        return Diagnostic(
            "UNKNOWN_NODE",
            f"{self.name} has no node {node}",
            f"nearest: {', '.join(close)}" if close else f"nodes go from {self.nodes[0]} to {self.nodes[-1]}",
        )

    def _rows(self, gpus: Iterable[GpuId]) -> dict[int, set[int]]:
        """GPU indices by node row; every unknown node or index is reported at once."""
        inventory = self.inventory
        rows: dict[int, set[int]] = {}
        faults: list[Diagnostic] = []
        for node, gpu in gpus:
            row = inventory.index.get(node)
            if row is None:
                faults.append(self._unknown_node(node))
                continue
            count = self.pools[int(self.pool_of_node[row])].gpus_per_node
            if not 0 <= gpu < count:
                faults.append(Diagnostic("GPU_INDEX_OUT_OF_RANGE", f"{node} has GPUs 0 to {count - 1}, not {gpu}", "count GPUs from 0"))
                continue
            rows.setdefault(row, set()).add(gpu)
        if faults:
            raise PlannerError(dict.fromkeys(faults))
        return rows

    def state(self, gpu: GpuId) -> str:
        """Tell whether a GPU is free, taken or failed.

        Raises
        ------
        PlannerError
            UNKNOWN_NODE or GPU_INDEX_OUT_OF_RANGE.
        """
        ((row, indices),) = self._rows([gpu]).items()
        return STATES[int(self.inventory.state[int(self.inventory.first_gpu[row]) + next(iter(indices))])]

    def pool(self, node: str) -> Pool:
        """Pool of a node.

        Raises
        ------
        PlannerError
            UNKNOWN_NODE.
        """
        return self.pools[int(self.pool_of_node[self.row(node)])]

    def scope_of(self, node: str) -> int:
        """Number of the scale-up scope that holds a node's GPUs.

        Raises
        ------
        PlannerError
            UNKNOWN_NODE.
        """
        return int(self.inventory.scope[self.row(node)])

    def failure_domains(self, node: str) -> Mapping[str, str]:
        """What a node fails with, by kind: node, leaf (where it has a network), and the kinds the topology names.

        Raises
        ------
        PlannerError
            UNKNOWN_NODE.
        """
        row = self.row(node)
        group = self.inventory.groups[int(self.inventory.group[row])]
        found = {"node": node}
        if group.leaves:
            found["leaf"] = self.leaf_name(int(self.inventory.leaf[row]))
        place = row - int(self.inventory.group.searchsorted(self.inventory.group[row]))
        return found | {kind: names[0] if len(names) == 1 else names[place] for kind, names in group.failure_domains.items()}

    def leaf_name(self, leaf: int) -> str:
        """Name of a leaf group, a host list where several leaves form it (one per rail); empty where nodes have no network."""
        return _fold(self.inventory.leaf_names[leaf])

    def spine_name(self, spine: int) -> str:
        """Name of a spine group; empty where its leaves hang on no named spine."""
        return _fold(self.inventory.spine_names[spine])

    def level(self, gpus: Iterable[GpuId]) -> str:
        """Smallest level that joins the GPUs: gpu, pair, mesh, domain, host, leaf, spine or fabric.

        Raises
        ------
        PlannerError
            UNKNOWN_NODE, GPU_INDEX_OUT_OF_RANGE, NO_GPUS, or NOT_CONNECTED where no path of links joins them.
        """
        return self._level(self._rows(gpus))

    def _level(self, rows: Mapping[int, set[int]]) -> str:
        if not rows:
            raise PlannerError([Diagnostic("NO_GPUS", "no GPUs are named", "name at least one")])
        first, *others = rows
        pool = self.pools[int(self.pool_of_node[first])]
        if not others:
            indices = rows[first]
            if len(indices) == 1:
                return "gpu"
            wiring = pool.wiring
            if wiring.level is not None:
                labels = wiring.group_labels()
                if len({labels[gpu] for gpu in indices}) == 1:
                    return wiring.level
            return pool.scale_up_level
        for level in (pool.scale_up_level, *NETWORK):
            labels_at = self.inventory.level_labels(level)
            label = labels_at[first]
            if all(labels_at[row] == label for row in others):
                return level
        names = ", ".join(self.nodes[row] for row in sorted(rows)[:4])
        raise PlannerError([Diagnostic("NOT_CONNECTED", f"no network joins {names}", "give the nodes nics and the topology a fabric")])

    def path(self, gpus: Iterable[GpuId]) -> LinkPath:
        """Bottleneck between the GPUs: the level that joins them and what the worst placed of them gets through it.

        Raises
        ------
        PlannerError
            As `level` does.
        """
        rows = self._rows(gpus)
        level = self._level(rows)
        first = next(iter(rows))
        pool = self.pools[int(self.pool_of_node[first])]
        if level not in NETWORK:
            return self._inside(pool, level, sorted(rows[first]), several_nodes=len(rows) > 1)
        numbers = dict.fromkeys(int(self.inventory.group[row]) for row in rows)
        groups = [self.inventory.groups[number] for number in numbers]
        ratio = max(leaf_ratio(group.leaves, self.network) for group in groups)
        paths = [network_path(level, group, group.nics, ratio, self.network) for group in groups if group.nics is not None]
        return min(paths, key=lambda path: (path.bandwidth, path.peer_bandwidth))

    @staticmethod
    def _inside(pool: Pool, level: str, indices: list[int], *, several_nodes: bool) -> LinkPath:
        wiring = pool.wiring
        if level == "gpu" or several_nodes or not wiring.direct or wiring.link is None:
            return pool.path(level)
        direct = wiring.direct_bandwidths()
        pairs = [(first, second) for place, first in enumerate(indices) for second in indices[place + 1 :]]
        if any(pair not in direct for pair in pairs):
            return pool.path(level)
        return group_path(level, wiring.link, len(indices), min(direct[pair] for pair in pairs))


def _fold(names: tuple[str, ...]) -> str:
    if len(names) < 2:
        return "".join(names)
    from planner.topology.host_lists import fold_hosts

    return fold_hosts(names)

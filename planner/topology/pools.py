"""Pools: nodes that are alike, and what one of their GPUs gets through each level."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.gpus import Gpu
from planner.catalog.links import Link
from planner.topology.document import FabricDescription
from planner.topology.groups import HostGroup, NicSet
from planner.topology.levels import INSIDE_HOST
from planner.topology.paths import LinkPath
from planner.topology.wiring import HostWiring

# Links on the way between two GPUs: GPU - host - leaf - host - GPU is 4, every tier above adds 2.
NETWORK_HOPS = {"leaf": 4, "spine": 6, "fabric": 8}


@dataclass(frozen=True)
class Pool:
    """Nodes alike in GPU type, wiring, network interfaces, price, billing and kind of scale-up domain.

    `levels` are the levels that join something in this pool, smallest first, always with gpu and the scale-up level; `paths` runs parallel to
    it. `scale_up_level` is domain, or host where the GPUs meet over PCIe; `scope_size` is the GPUs of the largest such scope. Prices are in the
    topology's currency per hour, None where neither the topology nor the catalog names one; `price_source` is "topology" or the catalog's example.
    """

    index: int
    gpu: Gpu
    gpus_per_node: int
    nodes: int
    price_per_gpu: float | None
    price_per_node: float | None
    price_source: str
    billing: str
    levels: tuple[str, ...]
    scale_up_level: str
    scope_size: int
    paths: tuple[LinkPath, ...]
    wiring: HostWiring
    nics: NicSet | None

    def path(self, level: str) -> LinkPath:
        """Path of one of the pool's levels.

        Raises
        ------
        KeyError
            If nothing of this pool is joined at that level.
        """
        if level not in self.levels:
            raise KeyError(level)
        return self.paths[self.levels.index(level)]

    @property
    def network_levels(self) -> tuple[str, ...]:
        """Levels beyond the scale-up scope, smallest first."""
        return self.levels[self.levels.index(self.scale_up_level) + 1 :]


def group_path(level: str, link: Link, size: int, peer: float) -> LinkPath:
    """Path among `size` GPUs joined directly, one with another, whose weakest pair has `peer` [B/s].

    A clique of k GPUs holds k - 1 link-disjoint rings, so each GPU moves (k - 1) x peer, up to all the GPU's links together: 64 GB/s between two MI300X,
    448 GB/s among eight.
    """
    return LinkPath(level, link, min(link.bandwidth.value, (size - 1) * peer), peer, 1)


def inside_path(level: str, group: HostGroup) -> LinkPath:
    """Path of a level inside the scale-up scope, when all GPUs it joins take part."""
    wiring = group.wiring
    scale_up = wiring.link or wiring.pcie
    if level == "gpu":
        bandwidth = group.gpu.memory_bandwidth.value
        return LinkPath(level, scale_up, bandwidth, bandwidth, 0)
    if level == "host":
        return LinkPath(level, wiring.pcie, wiring.pcie.bandwidth.value, wiring.pcie.bandwidth.value, 2)
    if level in INSIDE_HOST:
        direct = wiring.direct_bandwidths()
        worst = [min(direct[pair] for pair in direct if pair[0] in members and pair[1] in members) for members in map(set, wiring.groups)]
        paths = [group_path(level, scale_up, len(members), peer) for members, peer in zip(wiring.groups, worst, strict=True)]
        return min(paths, key=lambda path: (path.bandwidth, path.peer_bandwidth))
    if wiring.direct:
        return group_path(level, scale_up, wiring.gpus, min(bandwidth for _, _, bandwidth in wiring.direct))
    peer = scale_up.peer_bandwidth.value if scale_up.peer_bandwidth is not None else scale_up.bandwidth.value
    return LinkPath(level, scale_up, scale_up.bandwidth.value, peer, 2)


def network_path(level: str, group: HostGroup, nics: NicSet, leaf_ratio: float, fabric: FabricDescription) -> LinkPath:
    """Path between nodes, at leaf, spine or fabric.

    bandwidth = min(interfaces x speed / GPUs, PCIe) / oversubscription, with the leaf's ratio from spine upwards and the spine's on top at fabric; two GPUs
    alone have whole interfaces to themselves. Rail-optimised leaves are one leaf group: the same rail is one switch away there, and
    traffic to another rail first crosses NVLink to the GPU of that rail, as NCCL's PXN does.
    """
    gpus, pcie = group.wiring.gpus, group.wiring.pcie.bandwidth.value
    ratio = {"leaf": 1.0, "spine": leaf_ratio, "fabric": leaf_ratio * fabric.spine_oversubscription}[level]
    share = min(nics.count * nics.speed / gpus, pcie)
    alone = min(nics.speed * max(1, nics.count // gpus), pcie)
    return LinkPath(level, nics.link, share / ratio, alone, NETWORK_HOPS[level], nics.count / gpus, ratio, across_scopes=True)


def leaf_ratio(leaves: tuple[str, ...], fabric: FabricDescription) -> float:
    """Oversubscription of the worst of these leaves."""
    named = fabric.leaf_oversubscription
    if not named:
        return fabric.oversubscription
    return max((named.get(leaf, fabric.oversubscription) for leaf in leaves), default=fabric.oversubscription)

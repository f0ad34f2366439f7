"""How the GPUs inside one node are joined, once per kind of node: switched, direct, bridged in groups, or over PCIe only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from planner.catalog.gpus import Gpu
from planner.catalog.links import Link
from planner.catalog.links import link as link_named

# Links between the GPUs of a DGX-1 with V100: six a GPU, two quads fully joined and one edge from each GPU to its twin in the other quad.
# Source: NVIDIA DGX-1 with Tesla V100 system architecture white paper, hybrid cube mesh; `nvidia-smi topo -m` of such boxes prints the same up to numbering.
CUBE_MESH: Final[Mapping[tuple[int, int], int]] = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
    (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip
CUBE_MESH_GPUS: Final = 8

# Links of one GPU by the link's catalog name, longest prefix first (NVIDIA and AMD data sheets): what one NVLink of `nvidia-smi topo -m` is worth.
_LINKS_PER_GPU: Final[tuple[tuple[str, int], ...]] = (
    ("nvlink3-bridge", 4),
    ("nvlink4-bridge", 12),
    ("nvlink2", 6),
    ("nvlink3", 12),
    ("nvlink4", 18),
    ("nvlink5", 18),
    ("nvlink6", 36),
    ("xgmi", 7),
)


@dataclass(frozen=True)
class HostWiring:
    """The links between the GPUs of one node.

    `scale_up` is nvswitch, nvlink-pairs, nvlink-mesh, cube-mesh, xgmi, ici or none. `link` is the scale-up link (None with PCIe only), `pcie` the PCIe one.
    `direct` holds the bandwidth of direct links by GPU pair, lower index first [B/s]; it is empty where GPUs meet in a switch.
    `groups` are the sub-levels inside the host: GPUs joined with one another by direct links, but not with all of the host.
    `level` names that sub-level (pair or mesh; None without groups).
    """

    scale_up: str
    gpus: int
    link: Link | None
    pcie: Link
    direct: tuple[tuple[int, int, float], ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    level: str | None = None

    def __hash__(self) -> int:
        return hash((self.scale_up, self.gpus, self.pcie.name, self.groups))

    @property
    def whole_host(self) -> bool:
        """Whether the scale-up links join all GPUs of the node with one another, so that the node is one domain."""
        return self.scale_up in {"nvswitch", "xgmi", "ici"} or (self.scale_up == "nvlink-mesh" and not self.groups)

    def group_labels(self) -> tuple[int, ...]:
        """Number of the group of each GPU; GPUs outside every group have one of their own."""
        labels = [-1] * self.gpus
        for number, group in enumerate(self.groups):
            for gpu in group:
                labels[gpu] = number
        alone = len(self.groups)
        for gpu, label in enumerate(labels):
            if label < 0:
                labels[gpu] = alone
                alone += 1
        return tuple(labels)

    def direct_bandwidths(self) -> dict[tuple[int, int], float]:
        """Direct bandwidth by GPU pair, lower index first [B/s]."""
        return {(first, second): bandwidth for first, second, bandwidth in self.direct}


def complete(group: Iterable[int], bandwidth: float) -> list[tuple[int, int, float]]:
    """Direct links of `bandwidth` [B/s] between every two GPUs of a group."""
    members = sorted(group)
    return [(first, second, bandwidth) for index, first in enumerate(members) for second in members[index + 1 :]]


def links_per_gpu(link: Link) -> int:
    """Number of single links that make up a GPU's scale-up bandwidth (18 NVLinks of 25 GB/s on H100)."""
    return next((links for prefix, links in _LINKS_PER_GPU if link.name.startswith(prefix)), 1)


def cliques(gpus: int, edges: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Sets of two GPUs or more that are all joined with one another, each GPU in one set at most, lowest indices first.

    Greedy: the lowest GPU left takes, in order, every GPU joined with all it has so far. The cube mesh falls into its two quads this way.
    """
    near: dict[int, set[int]] = {}
    for first, second in edges:
        near.setdefault(first, set()).add(second)
        near.setdefault(second, set()).add(first)
    left = set(range(gpus))
    found: list[tuple[int, ...]] = []
    for first in range(gpus):
        if first not in left:
            continue
        members = [first]
        for other in sorted(left & near.get(first, set())):
            if near[other].issuperset(members):
                members.append(other)
        left.difference_update(members)
        if len(members) > 1:
            found.append(tuple(members))
    return tuple(found)


def wire(
    scale_up: str,
    gpus: int,
    link: Link | None,
    pcie: Link,
    pairs: tuple[tuple[int, ...], ...] | None = None,
    nvlinks: tuple[tuple[int, int, float], ...] | None = None,
) -> HostWiring:
    """Lay the links inside a node.

    A GPU's scale-up bandwidth is shared evenly by its peers in a direct mesh: 448 GB/s of MI300X are 64 GB/s to each of seven peers, 300 GB/s of A100 are
    100 GB/s to each of three. Where links are counted (cube mesh, irregular mesh), each is worth its share of the GPU's.

    Parameters
    ----------
    scale_up : str
        nvswitch, nvlink-pairs, nvlink-mesh, cube-mesh, xgmi, ici or none.
    gpus : int
        GPUs of the node.
    link, pcie : Link
        Scale-up link (None where there is none) and PCIe link.
    pairs : tuple of tuple of int, optional
        The bridged groups of nvlink-pairs, or the meshes of nvlink-mesh where the node has several.
    nvlinks : tuple of (int, int, float), optional
        Direct links of an irregular mesh: GPU, GPU, number of links.

    Returns
    -------
    HostWiring
        Wiring with its direct links and groups.
    """
    if scale_up == "none" or link is None:
        return HostWiring("none", gpus, None, pcie)
    if scale_up in {"nvswitch", "ici"}:
        return HostWiring(scale_up, gpus, link, pcie)
    total = link.bandwidth.value
    if scale_up == "cube-mesh":
        nvlinks = tuple((first, second, float(links)) for (first, second), links in CUBE_MESH.items())
    if nvlinks is not None:
        direct = tuple(sorted((min(one, other), max(one, other), total * links / links_per_gpu(link)) for one, other, links in nvlinks))
        groups = cliques(gpus, ((first, second) for first, second, _ in direct))
        if len(groups) == 1 and len(groups[0]) == gpus:
            return HostWiring("nvlink-mesh", gpus, link, pcie, direct)
        return HostWiring(scale_up, gpus, link, pcie, direct, groups, "pair" if max(map(len, groups)) == 2 else "mesh")
    if pairs is not None and not (len(pairs) == 1 and len(pairs[0]) == gpus):
        groups = tuple(sorted(tuple(sorted(group)) for group in pairs))
        edges = [edge for group in groups for edge in complete(group, total / (len(group) - 1))]
        return HostWiring(scale_up, gpus, link, pcie, tuple(edges), groups, "pair" if max(map(len, groups)) == 2 else "mesh")
    if gpus == 1:
        return HostWiring(scale_up, gpus, link, pcie)
    peer = link.peer_bandwidth.value if link.peer_bandwidth is not None else total / (gpus - 1)
    whole = "xgmi" if scale_up == "xgmi" else "nvlink-mesh"
    return HostWiring(whole, gpus, link, pcie, tuple(complete(range(gpus), peer)))


def usual_scale_up(gpu: Gpu, gpus: int, pairs: tuple[tuple[int, ...], ...] | None = None, *, meshed: bool = False) -> str:
    """Name the wiring a node of this GPU type has when nobody says otherwise.

    SXM boards meet in NVSwitches; V100 boards of eight are the DGX-1's cube mesh and boards of four are joined directly; MI300X boards by xGMI; cards with a
    place for a bridge have none until pairs are named, and counted links (`meshed`) make a mesh.
    """
    if gpu.scale_up is None:
        return "none"
    if meshed:
        return "nvlink-mesh"
    if pairs is not None:
        return "nvlink-pairs" if all(len(group) == 2 for group in pairs) else "nvlink-mesh"
    if gpu.scale_up_domain <= 2:
        return "none"
    kind = link_named(gpu.scale_up).kind
    if kind in {"xgmi", "ici"}:
        return kind
    if gpu.architecture == "volta":
        return "cube-mesh" if gpus == CUBE_MESH_GPUS else "nvlink-mesh" if gpus < CUBE_MESH_GPUS else "nvswitch"
    return "nvlink-mesh" if gpu.scale_up_domain < CUBE_MESH_GPUS else "nvswitch"

"""Hardware from the catalog alone: one kind of GPU, the links that join it, and the levels a layout spreads over.

Without a topology file the usual one is assumed: GPUs meet over their own scale-up link (or PCIe) in domains of the GPU type's usual size, one network
interface a GPU leads to the other domains. Paths come from `topology`, so a layout costs here what the same layout costs in a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from planner.candidates.degrees import Layout
from planner.catalog.facts import Fact
from planner.catalog.gpus import Gpu
from planner.catalog.links import NIC_KINDS, Link, link, study_interconnects
from planner.catalog.measured import NOTHING, Measurements
from planner.diagnostics import Diagnostic, PlannerError
from planner.plan.shape import Degrees
from planner.quantities import Kind, parse_quantity
from planner.topology.document import FabricDescription
from planner.topology.groups import HostGroup, NicSet, Price
from planner.topology.paths import LinkPath
from planner.topology.pools import Pool, inside_path, network_path
from planner.topology.wiring import HostWiring, usual_scale_up, wire

DEFAULT_NIC: Final = "infiniband-ndr-400"
HOST_GPUS: Final = 8  # GPUs of a host without a scale-up link: the most that PCIe boxes are built with
MOST_DOMAIN: Final = 1024
STUDY: Final = "study:"
_STUDY_KINDS: Final = (("pcie", "pcie"), ("nvlink", "nvlink"))


@dataclass(frozen=True)
class LinkFit:
    """Constants of a user's own for the link that joins the GPUs: alpha [s] and bandwidth [B/s], None = the catalog's."""

    alpha: float | None = None
    bandwidth: float | None = None


@dataclass(frozen=True)
class Hardware:
    """One kind of GPU with its links; `nodes` bounds the number of scale-up scopes, None = as many as a layout takes."""

    pool: Pool
    link: Link
    nodes: int | None = None

    @property
    def gpu(self) -> Gpu:
        """Type of the GPUs."""
        return self.pool.gpu

    @property
    def domain(self) -> int:
        """GPUs of one scale-up scope; 1 where GPUs meet over the network alone."""
        return self.pool.scope_size

    def level_of(self, gpus: int) -> int:
        """Index of the smallest level that joins `gpus` GPUs."""
        if gpus == 1:
            return 0
        if self.pool.wiring.groups and gpus <= max(map(len, self.pool.wiring.groups)):
            return 1
        scale_up = self.pool.levels.index(self.pool.scale_up_level)
        return scale_up if gpus <= self.domain and scale_up > 0 else len(self.pool.levels) - 1

    def layout(self, degrees: Degrees) -> Layout:
        """Degrees with the levels that join a TP group, a stage and the replica, packed as tightly as they go."""
        stage, gpus = degrees.stage_gpus, degrees.gpus
        whole = gpus if gpus <= self.domain else min(stage, self.domain)
        return Layout(
            degrees=degrees,
            tp_level=self.level_of(degrees.tensor_parallel),
            stage_level=self.level_of(stage),
            stage_scopes=-(-stage // self.domain),
            replica_level=self.level_of(gpus),
            group_level=self.level_of(whole),
            groups=-(-gpus // whole),
            group_size=whole,
        )

    def crosses(self, degrees: Degrees) -> bool:
        """Whether a TP group does not fit into one scale-up scope."""
        return degrees.tensor_parallel > self.domain

    def path(self, level: int) -> LinkPath:
        """Path of a level by its index."""
        return self.pool.paths[level]


def read_link(text: str, gpu: Gpu) -> Link:
    """Link by catalog name, by bandwidth (`25GB/s`: the GPU's own link, that fast), or of the communication cost study (`study:pcie3_x16`).

    Raises
    ------
    PlannerError
        UNKNOWN_LINK.
    QuantityError
        For a bandwidth that cannot be read.
    """
    if text.startswith(STUDY):
        return _study_link(text)
    if text[:1].isdigit() or text[:1] in "+-.":
        own = link(gpu.scale_up or gpu.pcie)
        bandwidth = parse_quantity(text, Kind.BYTES_PER_SECOND)
        if bandwidth <= 0.0:
            raise PlannerError([Diagnostic("BAD_LINK_SPEED", f"a link of {text} carries nothing", "write its bandwidth, such as 25GB/s")])
        share = own.calibrated_bandwidth.value / own.bandwidth.value
        return replace(
            own,
            name=text,
            bandwidth=Fact(bandwidth, "assumed", "given as a flag"),
            hockney_bandwidth=Fact(bandwidth, "assumed", "given as a flag"),
            calibrated_bandwidth=Fact(bandwidth * share, "assumed", f"{own.name}'s share of nominal"),
            peer_bandwidth=None,
        )
    return link(text)


def _study_link(text: str) -> Link:
    known = study_interconnects()
    name = text.removeprefix(STUDY)
    if name not in known:
        hint = f"the study has {', '.join(f'{STUDY}{key}' for key in known)}"
        raise PlannerError([Diagnostic("UNKNOWN_LINK", f"no link is called {text!r}", hint)])
    entry = known[name]
    alpha, bandwidth = Fact(entry.alpha, "assumed", entry.source), Fact(entry.bandwidth, "assumed", entry.source)
    kind = next((kind for prefix, kind in _STUDY_KINDS if name.startswith(prefix)), "ethernet")
    return Link(text, kind, bandwidth, alpha, bandwidth, alpha, bandwidth)


def fitted(entry: Link, fit: LinkFit) -> Link:
    """The same link with a user's own constants in both profiles."""
    if fit.alpha is not None:
        own = Fact(fit.alpha, "measured", "given as a flag")
        entry = replace(entry, hockney_alpha=own, calibrated_alpha=own)
    if fit.bandwidth is not None:
        own = Fact(fit.bandwidth, "measured", "given as a flag")
        entry = replace(entry, hockney_bandwidth=own, calibrated_bandwidth=own)
    return entry


def usual_domain(gpu: Gpu, joined: Link) -> int:
    """GPUs that meet over `joined` in one scope where nobody says otherwise."""
    if joined.kind in NIC_KINDS:
        return 1
    if gpu.scale_up is not None and gpu.scale_up_domain > 2 and joined.kind == link(gpu.scale_up).kind:
        return gpu.scale_up_domain
    return HOST_GPUS


def hardware(
    gpu: Gpu,
    joined: Link | None = None,
    nic: Link | None = None,
    *,
    domain: int | None = None,
    nodes: int | None = None,
    nics_per_gpu: float = 1.0,
    fit: LinkFit | None = None,
    measured: Measurements = NOTHING,
) -> Hardware:
    """Hardware of one kind of GPU.

    Parameters
    ----------
    gpu
        Type of the GPUs.
    joined
        Link that joins them; None = the GPU's own scale-up link, or PCIe where it has none (or only a place for a bridge). A network link
        makes every GPU a scope of its own. A bridge joins pairs, which meet over PCIe.
    nic
        Link of one network interface; None = InfiniBand NDR of 400 Gb/s.
    domain, nodes
        GPUs of one scale-up scope, and how many scopes there are.
    nics_per_gpu
        Interfaces of each GPU.
    fit
        Constants of a user's own for the joining link.
    measured
        Figures of a profile file that stand before the catalog's.
    """
    bridge = joined is not None and joined.name.endswith("-bridge")
    if joined is None:
        own = gpu.scale_up if gpu.scale_up is not None and gpu.scale_up_domain > 2 else gpu.pcie
        joined = link(own)
    joined, pcie = measured.link(joined), measured.link(link(gpu.pcie))
    size = domain if domain is not None else usual_domain(gpu, pcie if bridge else joined)
    joined = fitted(joined, fit or LinkFit())
    nic = measured.link(nic if nic is not None else link(DEFAULT_NIC))
    if joined.kind in NIC_KINDS:
        return Hardware(_pool(gpu, HostWiring("none", 1, None, pcie), _network_alone(gpu, joined), ("gpu", "leaf"), nodes), joined, nodes)
    wiring = _wiring(gpu, joined, pcie, size, bridge=bridge)
    scale_up = "domain" if wiring.whole_host else "host"
    levels: tuple[str, ...] = ("gpu", wiring.level, scale_up, "leaf") if wiring.level else ("gpu", scale_up, "leaf")
    if size == 1:
        levels = ("gpu", "leaf")
    nics = NicSet(max(1, round(nics_per_gpu * size)), nic, nic.bandwidth.value)
    group = HostGroup("", (), gpu, wiring, nics, (), (), None, Price(None, None, "", "gpu"))
    fabric = FabricDescription()
    paths = tuple(network_path(level, group, nics, 1.0, fabric) if level == "leaf" else inside_path(level, group) for level in levels)
    return Hardware(_pool(gpu, wiring, paths, levels, nodes), joined, nodes)


def _wiring(gpu: Gpu, joined: Link, pcie: Link, size: int, *, bridge: bool) -> HostWiring:
    if joined.kind == "pcie" or size == 1:
        return wire("none", size, None, joined if joined.kind == "pcie" else pcie)
    if bridge:
        pairs = tuple((first, first + 1) for first in range(0, size - 1, 2))
        return wire("nvlink-pairs", size, joined, pcie, pairs=pairs)
    if joined.kind in ("xgmi", "ici"):
        return wire(joined.kind, size, joined, pcie)
    usual = usual_scale_up(gpu, size)
    return wire(usual if usual in ("nvswitch", "nvlink-mesh", "cube-mesh") else "nvswitch", size, joined, pcie)


def _network_alone(gpu: Gpu, joined: Link) -> tuple[LinkPath, ...]:
    """Paths of GPUs that meet over the network alone: a group is an ordinary group on that link, not one spread over scopes."""
    read = gpu.memory_bandwidth.value
    speed = joined.bandwidth.value
    return (LinkPath("gpu", joined, read, read, 0), LinkPath("leaf", joined, speed, speed, 4, nics_per_gpu=1.0))


def _pool(gpu: Gpu, wiring: HostWiring, paths: tuple[LinkPath, ...], levels: tuple[str, ...], nodes: int | None) -> Pool:
    price = gpu.price.per_gpu_hour if gpu.price is not None else None
    return Pool(
        index=0,
        gpu=gpu,
        gpus_per_node=wiring.gpus,
        nodes=nodes or 1,
        price_per_gpu=price,
        price_per_node=None,
        price_source="" if gpu.price is None else f"{gpu.price.provider}, {gpu.price.date}",
        billing="gpu",
        levels=levels,
        scale_up_level=levels[-2] if len(levels) > 2 else "gpu",
        scope_size=wiring.gpus,
        paths=paths,
        wiring=wiring,
        nics=None,
    )

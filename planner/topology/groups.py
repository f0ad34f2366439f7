"""Groups of alike nodes with every name looked up: what the builders, documents and explicit graphs are all turned into first."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.catalog.gpus import Gpu
from planner.catalog.links import Link
from planner.topology.wiring import HostWiring


@dataclass(frozen=True)
class NicSet:
    """Network interfaces of one node: `count` ports of `link`, each `speed` fast in one direction [B/s]."""

    count: int
    link: Link
    speed: float


@dataclass(frozen=True)
class Price:
    """Price of a node and of one of its GPUs [currency/h], where it comes from, and what is paid for: the GPUs used or whole nodes."""

    per_gpu: float | None
    per_node: float | None
    source: str
    billing: str


@dataclass(frozen=True)
class HostGroup:
    """Nodes that are alike and hang on the same switches.

    `path` is the place in the document. `leaves` are the leaf switches of every node (one per rail), `spines` what those hang on; both empty
    without a network. `failure_domains` maps a kind (rack, row) to one name for all nodes or one per node. Nodes of different `island`s are joined by
    no network.
    """

    path: str
    names: tuple[str, ...]
    gpu: Gpu
    wiring: HostWiring
    nics: NicSet | None
    leaves: tuple[str, ...]
    spines: tuple[str, ...]
    nvlink_domain: str | None
    price: Price
    failure_domains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    island: str | None = None

    def likeness(self) -> tuple[object, ...]:
        """What nodes must share to be in one pool: GPU type, wiring, NICs, price, billing, and whether a domain joins them."""
        nics = (self.nics.count, self.nics.link.name, self.nics.speed) if self.nics else None
        return (self.gpu.name, self.wiring, nics, self.price, self.nvlink_domain is not None)

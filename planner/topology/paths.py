"""How a set of GPUs is joined: the level, its link, and what one GPU gets through it."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.links import Link


@dataclass(frozen=True)
class LinkPath:
    """The bottleneck link that joins GPUs of one pool at one level.

    `level` is gpu, pair, mesh, domain, host, leaf, spine or fabric. `link` is the catalog entry (alpha, nominal bandwidth, profile constants).
    `bandwidth` is what one GPU gets through it, per direction, when all its peers use theirs too [B/s]: NICs shared between GPUs and
    oversubscription are in it already. `peer_bandwidth` is what two GPUs get alone [B/s]. `hops` is the number of links on the path between two GPUs.
    `nics_per_gpu` is 0 inside a host. `across_scopes` tells whether the level lies beyond the scale-up scope, where collectives are hierarchical.
    """

    level: str
    link: Link
    bandwidth: float
    peer_bandwidth: float
    hops: int
    nics_per_gpu: float = 0.0
    oversubscription: float = 1.0
    across_scopes: bool = False

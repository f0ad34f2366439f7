"""Node labels that tell where a node hangs, each set in its own order: which is the leaf, which the spine, what joins or divides networks.

The clouds count in opposite directions (AWS's layer 1 is the top, topograph's tier 0 is nearest the node), so every set names its order.
Sources: NVIDIA/topograph docs/reference/node-labels.md; AWS, Google Cloud and Oracle Cloud documentation of the labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Tiers:
    """Where a node hangs: names of switches or of what stands for them, None where not told."""

    leaf: str | None = None
    spine: str | None = None
    island: str | None = None
    domain: str | None = None
    part_of_domain: str | None = None


# Each set of labels from the top of the network down to what is nearest the node.
LABEL_SETS: Final[Mapping[str, tuple[str, ...]]] = {
    "aws": tuple(f"topology.k8s.aws/network-node-layer-{layer}" for layer in (1, 2, 3, 4)),
    "gke": ("cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock"),
    "oci": ("oci.oraclecloud.com/host.hpc_island_id", "oci.oraclecloud.com/host.network_block_id", "oci.oraclecloud.com/host.rack_id"),
    "topograph": tuple(f"fabric.topograph.run/tier-{tier}" for tier in (5, 4, 3, 2, 1, 0)),
    "topograph-nvidia": tuple(f"network.topology.nvidia.com/{level}" for level in ("datacenter", "spine", "block")),
    "topograph-levels": tuple(f"topology.kubernetes.io/network-level-{level}" for level in (4, 3, 2, 1)),
}
CLIQUE: Final = "nvidia.com/gpu.clique"
_DOMAINS: Final = ("accelerator.topograph.run/domain", "network.topology.nvidia.com/accelerator", "topology.k8s.aws/ultraserver-id")
_PART: Final = "accelerator.topograph.run/sub-domain"
_HOSTNAMES: Final = ("kubernetes.io/hostname",)
_ZONES: Final = {
    "topology.kubernetes.io/zone": "zone",
    "topology.kubernetes.io/region": "region",
    "topology.k8s.aws/capacity-block-id": "capacity-block",
}
_SAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def plain_name(text: str) -> str:
    """Text as a name that host lists and switches may have."""
    return _SAFE.sub("-", text).strip("-.")[:100]


def tiers_of(labels: Mapping[str, str], order: Sequence[str] = ()) -> Tiers:
    """Where a node's labels say it hangs.

    Parameters
    ----------
    labels
        The node's labels.
    order
        Labels from the top down, of a Kueue Topology; the known sets are tried when it is empty or names none of the node's labels.
    """
    chosen, island = _levels(labels, order)
    domain = next((labels[key] for key in (CLIQUE, *_DOMAINS) if labels.get(key)), None)
    return Tiers(
        leaf=plain_name(chosen[-1]) or None if chosen else None,
        spine=plain_name(chosen[-2]) or None if len(chosen) > 1 else None,
        island=island,
        domain=plain_name(domain) or None if domain is not None else None,
        part_of_domain=plain_name(labels.get(_PART, "")) or None,
    )


def _levels(labels: Mapping[str, str], order: Sequence[str]) -> tuple[list[str], str | None]:
    """Values from the top down of the set of labels the node bears, and the network they belong to."""
    asked = [labels[key] for key in order if labels.get(key) and key not in _HOSTNAMES]
    if asked:
        return asked, None
    for name, keys in LABEL_SETS.items():
        values = [labels[key] for key in keys if labels.get(key)]
        if values:
            # Nodes in different zones share no low-latency network, whatever their upper layers are called.
            zone = labels.get("topology.kubernetes.io/zone", "")
            return values, plain_name(f"{name.partition('-')[0]}-{zone}")
    return [], None


def failure_domains_of(labels: Mapping[str, str]) -> dict[str, str]:
    """Zone, region and the like that a node fails with."""
    return {name: plain for key, name in _ZONES.items() if (plain := plain_name(labels.get(key, "")))}

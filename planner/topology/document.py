"""The topology as its author writes it: groups of alike nodes, the fabric, GPUs that are taken or failed.

These documents check the form only. What names refer to, and whether a wiring can exist, is checked by `checks` when the fabric is
built, so that every fault of a file is reported at once and with its place.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from planner.quantities import BytesPerSecond, MoneyPerHour

ScaleUp = Literal["nvswitch", "nvlink-pairs", "nvlink-mesh", "cube-mesh", "xgmi", "ici", "none"]
FabricKind = Literal["infiniband", "roce", "efa", "ethernet", "none"]
NicKind = Literal["infiniband", "roce", "efa", "ethernet"]
Billing = Literal["gpu", "node"]

# More nodes than this in one file is a slip of the pen ("h[1-9999999]"), not a cluster.
MOST_NODES = 1_000_000


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _ratio(value: Any) -> Any:
    """Read "2:1" as 2; everything else is left to the number's own check."""
    if isinstance(value, str) and value.count(":") == 1:
        down, up = value.split(":")
        try:
            return float(down) / float(up)
        except (ValueError, ZeroDivisionError):
            return value
    return value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Oversubscription = Annotated[float, BeforeValidator(_ratio), Field(ge=1, le=1000, allow_inf_nan=False)]
Index = Annotated[int, Field(ge=0, le=1023)]


class TopologyPart(BaseModel):
    """Settings shared by all parts of a topology document: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Nics(TopologyPart):
    """Network interfaces of one node: how many, and the speed of one port, one direction [B/s]."""

    count: int = Field(ge=1, le=1024, description="Network interfaces of one node that carry GPU traffic")
    speed: BytesPerSecond = Field(gt=0, description="Speed of one interface in one direction, 400Gb/s for example")
    kind: NicKind | None = Field(default=None, description="Kind of network; the fabric's own when absent")


class NodeGroup(TopologyPart):
    """Nodes that are alike; `name` is one host or a host list such as h100-[01-16]."""

    name: str = Field(min_length=1, max_length=100_000, description="Host name, or a host list such as h100-[01-16]")
    gpu: str = Field(min_length=1, max_length=200, description="GPU type by its catalog name")
    gpus: int = Field(default=8, ge=1, le=1024, description="GPUs of one node, taken and failed ones included")
    scale_up: ScaleUp | None = Field(default=None, description="How the GPUs of a node are joined; the GPU type's usual wiring when absent")
    scale_up_link: str | None = Field(
        default=None, description="Link of the scale-up wiring by catalog name, where it is not the GPU type's own"
    )
    pcie: str | None = Field(default=None, description="PCIe link by catalog name, where it is not the GPU type's own (pcie4-x8)")
    pairs: tuple[tuple[Index, ...], ...] | None = Field(default=None, description="GPUs joined by NVLink bridges: [[0, 1], [2, 3]]")
    nvlink_domain: str | None = Field(
        default=None, min_length=1, description="Name of an NVLink domain that joins several nodes (NVL72 trays)"
    )
    nics: Nics | None = Field(default=None, description="Network interfaces; without them the nodes are islands")
    leaf: Names | None = Field(default=None, description="Leaf switch, or a list with one leaf per rail")
    spine: Names | None = Field(default=None, description="Spine switches the leaves hang on")
    price: MoneyPerHour | None = Field(default=None, description="Price of one node per hour")
    gpu_price: MoneyPerHour | None = Field(default=None, description="Price of one GPU per hour")
    billing: Billing = Field(default="gpu", description="Pay for the GPUs used, or for whole nodes once one GPU is used")
    failure_domains: dict[str, str] = Field(
        default_factory=dict,
        description="What the nodes fail with: rack, row, zone, ... by name; a host list with one name per node where they differ",
    )


class FabricDescription(TopologyPart):
    """The network between nodes.

    `oversubscription` is traffic a leaf's nodes can offer over what its uplinks carry (1 = non-blocking, 2 or "2:1"), `spine_oversubscription` the
    same one tier up. `leaf_oversubscription` overrides it for single leaves, since cabling is often uneven.
    """

    kind: FabricKind = Field(default="ethernet", description="Kind of network between the nodes")
    oversubscription: Oversubscription = Field(default=1.0, description="Downlink over uplink bandwidth of a leaf: 1, 2 or 2:1")
    spine_oversubscription: Oversubscription = Field(default=1.0, description="The same from a spine to the core")
    leaf_oversubscription: dict[str, Oversubscription] = Field(
        default_factory=dict, description="Oversubscription of single leaves by name"
    )


class TopologyDocument(TopologyPart):
    """A cluster as written down by its operator."""

    name: str = Field(min_length=1, max_length=200, description="Name of the cluster")
    description: str = Field(default="", description="Free text")
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$", description="Currency of all prices, as its three-letter code")
    nodes: tuple[NodeGroup, ...] = Field(default=(), description="Groups of alike nodes")
    fabric: FabricDescription = Field(default_factory=FabricDescription, description="The network between nodes")
    taken: Names = Field(default=(), description="GPUs that others use: node:3, node:[4-7], or whole nodes by name")
    failed: Names = Field(default=(), description="GPUs that do not work, written as in `taken`")

"""The topology as its author writes it: nodes, builders or an explicit graph, the fabric, GPUs that are taken or failed.

These documents check the form only. What names refer to, and whether a wiring can exist, is checked when the fabric is built, so that every
fault of a file is reported at once and with its place.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from planner.topology.builders import HgxCluster, Nvl72Racks
from planner.topology.node_groups import Names, NodeGroup, TopologyPart
from planner.topology.node_link import NodeLinkGraph

FabricKind = Literal["infiniband", "roce", "efa", "ethernet", "none"]
Builder = Annotated[HgxCluster | Nvl72Racks, Field(discriminator="kind")]


def _ratio(value: Any) -> Any:
    """Read "2:1" as 2; everything else is left to the number's own check."""
    if isinstance(value, str) and value.count(":") == 1:
        down, up = value.split(":")
        try:
            return float(down) / float(up)
        except (ValueError, ZeroDivisionError):
            return value
    return value


Oversubscription = Annotated[
    float,
    BeforeValidator(_ratio),
    Field(ge=1, le=1000, allow_inf_nan=False),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 1, "maximum": 1000}, {"type": "string", "pattern": "^[0-9.]+:[0-9.]+$"}]}),
]


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
    build: tuple[Builder, ...] = Field(default=(), description="Clusters described by their counts")
    graph: NodeLinkGraph | None = Field(default=None, description="An explicit graph in networkx node-link form")
    fabric: FabricDescription = Field(default_factory=FabricDescription, description="The network between nodes")
    taken: Names = Field(default=(), description="GPUs that others use: node:3, node:[4-7], or whole nodes by name")
    failed: Names = Field(default=(), description="GPUs that do not work, written as in `taken`")

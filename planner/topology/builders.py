"""Clusters described by their counts: HGX nodes on a leaf-spine or rail-optimised fat tree, and NVL72 racks.

The counts follow NVIDIA's DGX SuperPOD reference architectures (H100 network fabrics, table of larger configurations; B200 architecture): scalable
units of 32 nodes, eight leaves a unit with one rail each, switches of 64 ports, non-blocking.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.topology.node_groups import Name, NodeGroup, NodeSettings

# 64 ports a switch. Two tiers end where the spines have a port for every leaf; beyond that, pods of 32 leaves (four units with eight rails, the
# largest with two tiers in the H100 architecture) are joined by a core.
SPINE_PORTS = 64
POD_LEAVES = 32

_Count = Annotated[int, Field(ge=1, le=100_000)]


def spine_count(leaves: int) -> int:
    """Spines of a non-blocking two-tier fat tree of 64-port switches, in powers of two as the reference architecture has them.

    Each leaf sends 32 cables up and a spine takes 64, so leaves / 2 spines: 8 leaves have 4, 16 have 8, 24 and 32 have 16.
    """
    return 1 << max(0, ((leaves + 1) // 2 - 1).bit_length())


def spines_of_unit(prefix: str, unit: int, units: int, leaves_per_unit: int) -> tuple[str, ...]:
    """Names of the spines that a unit's leaves hang on; none where the unit is alone with one leaf.

    Above 64 leaves the units form pods whose spines have half their ports towards the core, so a pod has as many spines as leaves.
    """
    leaves = units * leaves_per_unit
    if leaves <= 1:
        return ()
    if leaves <= SPINE_PORTS:
        return tuple(f"{prefix}-spine-{number + 1}" for number in range(spine_count(leaves)))
    pod_units = max(1, POD_LEAVES // leaves_per_unit)
    return tuple(f"{prefix}-pod-{unit // pod_units + 1}-spine-{number + 1}" for number in range(pod_units * leaves_per_unit))


def _numbers(start: int, count: int, width: int) -> str:
    return f"[{start:0{width}d}-{start + count - 1:0{width}d}]" if count > 1 else f"{start:0{width}d}"


class HgxCluster(NodeSettings):
    """Alike nodes in scalable units, on a rail-optimised or a plain leaf-spine network.

    Rail-optimised: every unit has `rails` leaves, and interface i of each of its nodes hangs on leaf i. Leaf-spine: every unit has one leaf that carries all
    interfaces of its nodes. `nodes` below units x nodes_per_unit leaves the last unit short (127 nodes of four H100 units: one port is the
    fabric manager's). Up to 64 leaves there are two tiers; beyond, pods of four units below a core.
    """

    kind: Literal["hgx"]
    name: Name = Field(description="Prefix of the node names: h100 makes h100-001, h100-002, ...")
    gpus: int = Field(default=8, ge=1, le=16, description="GPUs of one node, taken and failed ones included")
    network: Literal["rail-optimised", "leaf-spine"] = Field(
        default="rail-optimised", description="How the nodes of a unit hang on its leaves"
    )
    scalable_units: _Count = Field(default=1, description="Scalable units, each with its own leaves")
    nodes_per_unit: _Count = Field(default=32, description="Nodes of one scalable unit")
    nodes: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(default=None, description="Nodes in all, where the last unit is short")
    rails: Annotated[int, Field(ge=1, le=64)] | None = Field(default=None, description="Leaves of one unit; one per interface when absent")

    @model_validator(mode="after")
    def _nodes_fit(self) -> Self:
        most = self.scalable_units * self.nodes_per_unit
        if self.nodes is not None and self.nodes > most:
            raise ValueError(
                f"{self.nodes} nodes do not fit in {self.scalable_units} units of {self.nodes_per_unit}; write scalable_units: {-(-self.nodes // self.nodes_per_unit)}"
            )
        return self

    @property
    def node_count(self) -> int:
        """Nodes in all."""
        return self.scalable_units * self.nodes_per_unit if self.nodes is None else self.nodes

    @property
    def leaves_per_unit(self) -> int:
        """Leaves of one scalable unit."""
        if self.network == "leaf-spine":
            return 1
        return self.rails or (self.nics.count if self.nics is not None else self.gpus)

    @property
    def leaves(self) -> int:
        """Leaf switches in all."""
        return self.leaves_per_unit * -(-self.node_count // self.nodes_per_unit)

    def groups(self) -> tuple[NodeGroup, ...]:
        """One node group per scalable unit."""
        settings = {key: getattr(self, key) for key in NodeSettings.model_fields}
        width = max(2, len(str(self.node_count)))
        units = -(-self.node_count // self.nodes_per_unit)
        found: list[NodeGroup] = []
        for unit, start in enumerate(range(0, self.node_count, self.nodes_per_unit)):
            count = min(self.nodes_per_unit, self.node_count - start)
            group = NodeGroup.model_construct(
                **settings,
                name=f"{self.name}-{_numbers(start + 1, count, width)}",
                leaf=self._leaf_names(unit) if self.nics is not None else None,
                spine=spines_of_unit(self.name, unit, units, self.leaves_per_unit) or None if self.nics is not None else None,
            )
            found.append(group.priced_in(self.currencies))
        return tuple(found)

    def _leaf_names(self, unit: int) -> tuple[str, ...]:
        if self.leaves_per_unit == 1:
            return (f"{self.name}-leaf-{unit + 1}",)
        return tuple(f"{self.name}-unit-{unit + 1}-rail-{rail + 1}" for rail in range(self.leaves_per_unit))


class Nvl72Racks(NodeSettings):
    """NVL72 racks: 18 trays of 4 GPUs in one NVLink domain, one leaf per rail for every `racks_per_unit` racks."""

    kind: Literal["nvl72"]
    name: Name = Field(default="rack", description="Prefix of the racks' names: rack makes rack-01 with trays rack-01-01 to rack-01-18")
    racks: _Count = Field(default=1, description="Racks, each one NVLink domain")
    trays: Annotated[int, Field(ge=1, le=18)] = Field(default=18, description="Compute trays of one rack")
    gpus: int = Field(default=4, ge=1, le=4, description="GPUs of one tray, taken and failed ones included")
    racks_per_unit: _Count = Field(default=1, description="Racks that share their leaves")

    def groups(self) -> tuple[NodeGroup, ...]:
        """One node group per rack, each with the rack as its failure domain."""
        settings = {key: getattr(self, key) for key in NodeSettings.model_fields} | {"scale_up": self.scale_up or "nvswitch"}
        width = max(2, len(str(self.racks)))
        units = -(-self.racks // self.racks_per_unit)
        rails = self.nics.count if self.nics is not None else 0
        found: list[NodeGroup] = []
        for number in range(self.racks):
            rack, unit = f"{self.name}-{number + 1:0{width}d}", number // self.racks_per_unit
            group = NodeGroup.model_construct(
                **settings | {"failure_domains": {"rack": rack, **self.failure_domains}},
                name=f"{rack}-{_numbers(1, self.trays, 2)}",
                nvlink_domain=rack,
                leaf=tuple(f"{self.name}-unit-{unit + 1}-rail-{rail + 1}" for rail in range(rails)) or None,
                spine=spines_of_unit(self.name, unit, units, rails) or None,
            )
            found.append(group.priced_in(self.currencies))
        return tuple(found)


def hgx(name: str, gpu: str, **settings: object) -> tuple[NodeGroup, ...]:
    """Node groups of an HGX cluster, by the keys of `HgxCluster`.

    Raises
    ------
    pydantic.ValidationError
        If a key is unknown or a value has the wrong form.
    """
    return HgxCluster.model_validate({"kind": "hgx", "name": name, "gpu": gpu, **settings}).groups()


def nvl72(name: str, gpu: str, **settings: object) -> tuple[NodeGroup, ...]:
    """Node groups of NVL72 racks, by the keys of `Nvl72Racks`.

    Raises
    ------
    pydantic.ValidationError
        If a key is unknown or a value has the wrong form.
    """
    return Nvl72Racks.model_validate({"kind": "nvl72", "name": name, "gpu": gpu, **settings}).groups()

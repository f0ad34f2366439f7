"""Explicit graphs in networkx node-link form: hosts, GPUs and switches as vertices, links as edges.

`networkx.node_link_data(fabric.graph)` writes this form, and so does any script that builds a graph. Vertices have a `kind`: host (with the keys
of a node group), gpu (`host`, `index`, `state`), nvswitch, leaf, spine or core. What a host's edges say takes the place of the keys leaf, spine,
nvlink_domain and nvlinks. A leaf whose edges all carry `bandwidth` gets its own oversubscription from them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AliasChoices, ConfigDict, Field

from planner.topology.node_groups import Index, Name, NodeSettings, TopologyPart

VertexKind = Literal["host", "gpu", "nvswitch", "leaf", "spine", "core"]
GpuState = Literal["free", "taken", "failed"]


class Vertex(TopologyPart):
    """One vertex. The keys of a node group belong to hosts; `host`, `index` and `state` to GPUs."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True)

    id: Name
    kind: VertexKind
    name: Name | None = Field(default=None, description="Name to use in plans; the id when absent")
    host: Name | None = Field(default=None, description="Host of a GPU, by name or id")
    index: Index | None = Field(default=None, description="Index of a GPU in its host, from 0")
    state: GpuState = Field(default="free", description="Whether a GPU can be used")

    @property
    def label(self) -> str:
        """Name of the vertex, its id when it has none."""
        return self.name or self.id


class HostVertex(NodeSettings):
    """The keys a host may have besides its id, kind and name; without `gpus` its GPU vertices are counted."""

    gpus: int = Field(default=0, ge=0, le=1024)
    pairs: tuple[tuple[Index, ...], ...] | None = None
    nvlinks: tuple[tuple[Index, Index, float], ...] | None = None
    island: Name | None = None
    taken: tuple[Index, ...] = ()
    failed: tuple[Index, ...] = ()


class Edge(TopologyPart):
    """One link between two vertices. `links` or `bandwidth` [B/s] size a direct link between two GPUs."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True)

    source: Name
    target: Name
    links: float | None = Field(default=None, gt=0, description="Number of single links between two GPUs")
    bandwidth: float | None = Field(default=None, gt=0, description="Bandwidth in one direction [B/s]")


class NodeLinkGraph(TopologyPart):
    """A graph as `networkx.node_link_data` writes it; the edges' key is `edges` or, in older releases, `links`."""

    directed: bool = False
    multigraph: bool = False
    graph: dict[str, Any] = Field(default_factory=dict)
    nodes: tuple[Vertex, ...] = Field(min_length=1)
    edges: tuple[Edge, ...] = Field(default=(), validation_alias=AliasChoices("edges", "links"))

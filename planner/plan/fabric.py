"""The fabric a plan lies on, as part of its document: enough to draw it, without the topology file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class NodesDocument(BaseModel):
    """Nodes alike in everything that shows: `nodes` is a host list, the GPU counts are those of all of them together.

    `domain` is the NVLink domain of several hosts they lie in, empty where each host is one of its own. `parts` are the pairs or meshes of a node.
    `taken` and `failed` are GPU indices of every node of the list; in fabrics of more than 1,000 nodes they are left out and only the counts told.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: str
    count: int
    gpu: str
    gpus: int
    leaf: str = ""
    spine: str = ""
    domain: str = ""
    parts: tuple[tuple[int, ...], ...] = ()
    taken: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    free_gpus: int
    taken_gpus: int = 0
    failed_gpus: int = 0


class LinkDocument(BaseModel):
    """What joins GPUs of one type at one level: bandwidth of a GPU in one direction [B/s], start-up of a message [s]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpu: str
    level: str
    link: str
    bandwidth: float
    alpha: float
    oversubscription: float = 1.0


class FabricDocument(BaseModel):
    """Nodes in the topology's order, and the links of every pool, innermost first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    nodes: tuple[NodesDocument, ...]
    links: tuple[LinkDocument, ...]


class AskedDocument(BaseModel):
    """What a deployment was asked for: lengths [tokens], targets [s], the percentile they hold at, least efficiency (share of 1)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    tpot_s: float | None = None
    ttft_s: float | None = None
    percentile: float | None = None
    min_efficiency: float | None = None

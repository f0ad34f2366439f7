"""What a plan says so that it can be started: limits, checkpoints, nodes."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class LimitsDocument(BaseModel):
    """What the engine of a replica is started with: lengths and chunk [tokens], sequences of one data-parallel rank, share of the GPU's memory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_model_len: int
    max_batched_tokens: int
    max_num_seqs: int
    gpu_memory_utilization: float


class CheckpointDocument(BaseModel):
    """The model's weights as they are published or stored: Hugging Face id (None for a config file of one's own), number formats, what it is made of.

    `weights` is the format of the linear weights, `method` the quantization method ("" = none), `dtype` the 16 bits of the rest, `kv_cache` what the
    checkpoint has scales for (None = nothing). `context` is the longest context of the model [tokens], 0 where it has no bound. `experts` of one layer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hugging_face: str | None
    weights: str
    method: str
    dtype: str
    kv_cache: str | None
    context: int
    experts: int


class NodeDocument(BaseModel):
    """A node that the plan uses, with the leaf switch it hangs on ("" where on none or on several).

    It has `gpus` GPUs, of which those `taken` are somebody else's or failed; its scale-up domain spans `domain_nodes` nodes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    gpu: str
    gpus: int
    taken: tuple[int, ...]
    domain: str
    domain_nodes: int
    leaf: str

"""What a plan says so that it can be started: limits, checkpoints, nodes."""

from __future__ import annotations

from typing import Literal

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


class SpeculationDocument(BaseModel):
    """Speculative decoding as the plan counts with it: `tokens` are proposed at once by a draft model, the checkpoint's own layers, or n-grams of the prompt.

    `model` is the draft as the problem names it, `hugging_face` its published weights (None for a config file of one's own); both None without a draft.
    A draft that stands `alone` is whole on every rank, otherwise it is cut like the model it serves.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Literal["draft", "own-layers", "ngram"]
    model: str | None
    hugging_face: str | None
    tokens: int
    alone: bool


class AdaptersDocument(BaseModel):
    """Low-rank adapters that memory is kept for: `slots` at once, each of at most `rank`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slots: int
    rank: int


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

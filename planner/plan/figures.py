"""Parts of the plan document that tell one replica: its shape, its ranks, and its figures."""

from __future__ import annotations

from operator import not_

from pydantic import BaseModel, ConfigDict, Field


class Frozen(BaseModel):
    """Immutable document part; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ShapeDocument(Frozen):
    """Degrees and operating point of one replica; `nodes` tells of which nodes it is meant, where others have the same GPUs."""

    gpu: str
    tp: int
    pp: int
    ep: int
    dp: int
    batch: int
    locality: str
    partition: tuple[int, ...] = ()
    weights_dtype: str = ""
    kv_dtype: str = ""
    nodes: str = Field(default="", exclude_if=not_)


class RankDocument(Frozen):
    """One rank on one GPU."""

    rank: int
    stage: int
    tp_rank: int
    dp_rank: int
    ep_rank: int
    node: str
    gpu: int
    domain: str


class MemoryDocument(Frozen):
    """Memory of the fullest rank [GiB]."""

    budget_gib: float
    weights_gib: float
    kv_gib: float
    other_gib: float
    other_low_gib: float
    other_high_gib: float
    free_gib: float
    max_sequences: int
    stage: int


class TimesDocument(Frozen):
    """Times [s] and derived shares of one replica at its batch."""

    tpot_s: float
    ttft_s: float
    compute_s: float
    tp_comm_s: float
    pp_comm_s: float
    ep_comm_s: float
    fixed_s: float
    prefill_compute_s: float
    prefill_comm_s: float
    queueing_s: float
    overhead: float
    efficiency: float
    latency_efficiency: float
    bubble: float


class TailDocument(Frozen):
    """Times at the percentile that the targets ask for [s]."""

    percentile: float
    tpot_s: float
    ttft_s: float


class SpareDocument(Frozen):
    """GPUs kept free for one lost replica of a shape, as the ranks that it would have there."""

    shape: ShapeDocument
    ranks: tuple[RankDocument, ...]
    price_per_hour: float | None


class BucketDocument(Frozen):
    """What a replica serves of one bucket of lengths: the `fraction` of its room that takes, and the `load` in the deployment's unit.

    The other figures are those of the replica when it serves this bucket alone.
    """

    name: str
    prompt_tokens: int
    output_tokens: int
    fraction: float
    load: float
    batch: int
    capacity: float
    throughput_tokens_s: float
    memory: MemoryDocument
    times: TimesDocument
    tail: TailDocument | None = None

"""The shared language of the menu, the formulation, the plan and the auditor: a shape and its figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Degrees:
    """Parallel degrees of one replica.

    `tensor_parallel` t, `pipeline_parallel` p, `expert_parallel` e, `data_parallel` (attention ranks inside one replica).
    A replica has p stages of t x data_parallel GPUs each. Experts are spread over e ranks of a stage (e divides t x data_parallel)
    and each expert is split over (t x data_parallel) / e ranks; e = 1 means no expert parallelism.
    """

    tensor_parallel: int
    pipeline_parallel: int = 1
    expert_parallel: int = 1
    data_parallel: int = 1

    @property
    def stage_gpus(self) -> int:
        """GPUs of one pipeline stage."""
        return self.tensor_parallel * self.data_parallel

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.stage_gpus * self.pipeline_parallel

    def __str__(self) -> str:
        parts = [f"TP{self.tensor_parallel}"]
        if self.pipeline_parallel > 1:
            parts.append(f"PP{self.pipeline_parallel}")
        if self.data_parallel > 1:
            parts.append(f"DP{self.data_parallel}")
        if self.expert_parallel > 1:
            parts.append(f"EP{self.expert_parallel}")
        return " x ".join(parts)


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """Memory of the fullest rank over all stages [B].

    `budget` = gpu_memory_utilization x what the driver reports. `free` = budget - weights - kv - other at the shape's batch.
    `other` = activation peak + CUDA graphs + communicators + context + fixed terms (expected values); `other_low`, `other_high` bound it.
    """

    budget: float
    weights: float
    kv: float
    other: float
    other_low: float
    other_high: float
    free: float
    max_sequences: int
    stage: int


@dataclass(frozen=True, slots=True)
class TimeFigures:
    """Times of one decode step and of the first token [s]; `overhead` = communication / compute, others are shares of 1."""

    tpot: float
    ttft: float
    compute: float
    tp_comm: float
    pp_comm: float
    ep_comm: float
    fixed: float
    prefill_compute: float
    prefill_comm: float
    queueing: float
    overhead: float
    efficiency: float
    latency_efficiency: float
    bubble: float


@dataclass(frozen=True, slots=True)
class TailFigures:
    """Times at a percentile [per cent] of the requests [s]."""

    percentile: float
    tpot: float
    ttft: float


@dataclass(frozen=True, slots=True)
class Shape:
    """One way to run one replica of a deployment on one pool of GPUs, with everything the formulation needs to know.

    `deployment` and `pool` are indices into the problem's deployments and the fabric's pools. `batch` is the number of sequences
    held within SLO and memory (one replica, all data-parallel ranks together). `locality` is the smallest level that joins the whole
    replica (gpu, pair, mesh, domain, host, leaf, spine, fabric); `group_level` the one that joins one group. The replica consists of `groups` groups of
    `group_size` GPUs; each group sits inside one scale-up scope (at `group_level` when that is a sub-level such as a pair). When locality is within the
    scale-up scope there is one group holding the whole replica.
    `capacity` is what one replica serves in units of the deployment's load (sequences for a concurrency, output tokens/s for a rate).
    `price` is $/h of one replica, billed per GPU. `comm_seconds` is the alpha-beta communication time of one decode step.
    Where the workload has buckets, `parts` holds the shape as it serves each bucket alone (None where it may not), its `capacity` in requests/s or
    sequences of that bucket, and `bucket` tells which one the other figures are of; the `capacity` of the whole is that at the workload's own mix
    of the buckets it may serve.
    Plans of equal cost are told apart by `load_tpot`, the time per token [s] of a replica that carries the whole load, where that does not fill it, and
    by `relief`, what the time per token falls [s] for room of one more load, known of the shape that holds most sequences per GPU of a deployment on a pool.
    """

    deployment: int
    pool: int
    degrees: Degrees
    batch: int
    locality: str
    group_level: str
    groups: int
    group_size: int
    capacity: float
    price: float
    comm_seconds: float
    throughput: float  # output tokens/s of one replica at `batch`
    memory: MemoryFigures
    times: TimeFigures
    partition: tuple[int, ...]  # layers per pipeline stage, sums to L
    weights_dtype: str
    kv_dtype: str
    tail: TailFigures | None = None  # where the targets ask for a percentile
    bucket: int = -1
    parts: tuple[Shape | None, ...] = ()
    load_tpot: float | None = None  # where it is not that of `times`
    relief: float | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """A shape that left the menu, with the code and the sentence that say why.

    `shortfall` orders near misses: how much is missing relative to what was asked (0.03 = 3 % short); None where it has no size.
    Number formats are told where the reason depends on them.
    """

    deployment: int
    pool: int
    degrees: Degrees
    locality: str
    code: str
    message: str
    shortfall: float | None = None
    bucket: str = ""  # where only this bucket is not served
    weights_dtype: str = ""
    kv_dtype: str = ""

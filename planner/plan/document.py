"""The plan as a document: what `solve --json` prints, `plan.json` holds, and the auditor reads.

Keys may be added, never renamed. The order is stable and there are no wall times, so the same problem gives the same bytes.
"""

from __future__ import annotations

from operator import not_
from typing import Final, Literal

from pydantic import Field

from planner.plan.fabric import AskedDocument, FabricDocument
from planner.plan.figures import (
    BucketDocument,
    Frozen,
    MemoryDocument,
    RankDocument,
    ShapeDocument,
    SpareDocument,
    TailDocument,
    TimesDocument,
)
from planner.plan.serving import AdaptersDocument, CheckpointDocument, LimitsDocument, NodeDocument, SpeculationDocument

__all__ = ["BucketDocument", "Frozen", "MemoryDocument", "RankDocument", "ShapeDocument", "SpareDocument", "TailDocument", "TimesDocument"]

FORMAT_VERSION: Final = 1


class ReplicaDocument(Frozen):
    """One replica: shape, ranks, memory, times, and the limits that its memory was counted with.

    Where the load is in buckets, batch, memory and times are those of the one that takes most of it.
    """

    shape: ShapeDocument
    ranks: tuple[RankDocument, ...]
    memory: MemoryDocument
    times: TimesDocument
    capacity: float
    price_per_hour: float | None
    throughput_tokens_s: float
    usd_per_million_output_tokens: float | None
    tail: TailDocument | None = None
    change: Literal["kept", "moved", "new"] | None = None
    limits: LimitsDocument | None = None
    # Left out where it says nothing: plans without it stay as they were before there was such a key.
    buckets: tuple[BucketDocument, ...] = Field(default=(), exclude_if=not_)


class EngineDocument(Frozen):
    """Serving engine the plan is legal for."""

    name: str
    version: str | None = None


class DeploymentDocument(Frozen):
    """All replicas of one deployment; `request_tokens` is what one request of the workload needs [tokens]."""

    name: str
    model: str
    engine: EngineDocument
    load: float
    load_unit: str
    capacity: float
    price_per_hour: float | None
    usd_per_million_output_tokens: float | None
    replicas: tuple[ReplicaDocument, ...]
    unserved: float = 0.0
    spares: tuple[SpareDocument, ...] = Field(default=(), exclude_if=not_)
    asked: AskedDocument | None = None
    checkpoint: CheckpointDocument | None = None
    request_tokens: int | None = None
    speculation: SpeculationDocument | None = Field(default=None, exclude_if=not_)
    adapters: AdaptersDocument | None = Field(default=None, exclude_if=not_)


class AlternativeDocument(Frozen):
    """A shape that would also serve the deployment, with what makes it lose."""

    deployment: str
    shape: ShapeDocument
    replicas: int
    gpus: int
    price_per_hour: float | None
    tpot_s: float
    ttft_s: float
    reason: str


class RejectedDocument(Frozen):
    """A shape that is not possible, with the rule it breaks."""

    deployment: str
    shape: ShapeDocument
    code: str
    message: str
    shortfall: float | None = None
    bucket: str = Field(default="", exclude_if=not_)


class BindingDocument(Frozen):
    """A limit that holds the answer back: which, how full, and of what."""

    deployment: str | None
    name: str
    message: str


class CheckDocument(Frozen):
    """One line of the ten-step checklist with its verdict."""

    deployment: str
    step: int
    name: str
    message: str
    verdict: Literal["ok", "warn", "fail", "info"]


class SourceDocument(Frozen):
    """What a figure of a deployment rests on; `median_error` and `p90_error` are shares of 1 over the `rows` it was fitted on."""

    deployment: str
    figure: str
    basis: str
    source: str
    rows: int = 0
    median_error: float | None = None
    p90_error: float | None = None


class DiagnosticDocument(Frozen):
    """A diagnostic as JSON."""

    code: str
    severity: str
    message: str
    hint: str = ""
    place: str = ""


class ObjectiveDocument(Frozen):
    """Objective with its proved bound."""

    name: str
    value: float
    bound: float
    gap: float
    unit: str


class NotKeptDocument(Frozen):
    """A replica of the current plan that cannot stay as it is, by deployment and number there, and what is in the way."""

    deployment: str
    replica: int
    code: str
    message: str


class CurrentDocument(Frozen):
    """What becomes of the plan that runs: replicas kept as they are, moved, new and stopped; a move is a replica moved or new.

    The objective holds `moves_per_hour` = moves x `price_per_move` / `over_hours` besides the money of the plan.
    """

    price_per_move: float
    over_hours: float
    kept: int
    moved: int
    new: int
    stopped: int
    moves: int
    moves_per_hour: float
    not_kept: tuple[NotKeptDocument, ...] = ()


class ProvenanceDocument(Frozen):
    """What the plan was computed from."""

    problem_sha256: str
    planner: str
    ortools: str
    catalog_sha256: str
    profile: str
    seed: int


class ParetoShapesDocument(Frozen):
    """Replicas of one shape of one deployment."""

    deployment: str
    shape: ShapeDocument
    replicas: int


class ParetoPointDocument(Frozen):
    """A plan that no other plan beats in money and latency at once; `tpot_s` and `ttft_s` are the worst of its replicas [s].

    `bound` is proved of the money (or the GPUs) of every plan that is as fast, `gap` = (value - bound) / value. `proof` is optimal when the gap closes and
    no faster plan costs as little, else feasible.
    """

    cost_per_hour: float | None
    gpus_used: int
    tpot_s: float
    ttft_s: float
    shapes: tuple[ParetoShapesDocument, ...]
    bound: float
    gap: float
    proof: Literal["optimal", "feasible"]


class ParetoDocument(Frozen):
    """Plans from the cheapest to the fastest: `money` (cost or gpus) against the worst time `by`; `complete` unless a limit was met."""

    by: Literal["tpot", "ttft"]
    money: Literal["cost", "gpus"]
    complete: bool
    points: tuple[ParetoPointDocument, ...]


class PlanDocument(Frozen):
    """A whole answer."""

    format_version: Literal[1] = 1
    problem: str
    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    stopped_by: str | None
    objective: ObjectiveDocument | None
    secondary: tuple[ObjectiveDocument, ...] = ()
    cost_per_hour: float | None
    currency: str = "USD"
    gpus_used: int
    gpus_total: int
    deployments: tuple[DeploymentDocument, ...]
    alternatives: tuple[AlternativeDocument, ...]
    rejected: tuple[RejectedDocument, ...]
    binding: tuple[BindingDocument, ...]
    checks: tuple[CheckDocument, ...]
    sources: tuple[SourceDocument, ...] = ()
    pareto: ParetoDocument | None = None
    current: CurrentDocument | None = None
    repairs: tuple[DiagnosticDocument, ...] = ()
    nodes: tuple[NodeDocument, ...] = ()
    diagnostics: tuple[DiagnosticDocument, ...]
    fabric: FabricDocument | None = None
    provenance: ProvenanceDocument

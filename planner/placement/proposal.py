"""A placement as its author means it, whatever file it came from: which replicas of what, cut how, on which GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.diagnostics import Diagnostic, Place, Severity
from planner.plan.document import PlanDocument
from planner.plan.shape import Degrees

# More ranks than this in one replica is a slip of the pen; degrees are bounded as a problem's are.
MOST_RANKS = 65_536
LARGEST_DEGREE = 4096
MOST_TOKENS = 10_000_000
MOST_SEQUENCES = 1_000_000
WEIGHTS = ("bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4")
KV_CACHES = ("bf16", "fp16", "fp8", "int8")


@dataclass(frozen=True, slots=True)
class ProposedGpu:
    """One GPU that a rank is put on, as the file names it, and where it stands in the file."""

    node: str
    gpu: int
    place: Place

    def __str__(self) -> str:
        return f"{self.node}:{self.gpu}"


DRAFT, OWN_LAYERS, NGRAM = "draft", "own-layers", "ngram"


@dataclass(frozen=True, slots=True)
class PlacedSpeculation:
    """Speculative decoding of a command: what proposes, its draft `model`, how many tokens at once, whether the draft is whole on every rank; None = not said."""

    method: str
    model: str | None
    tokens: int | None
    alone: bool | None


@dataclass(frozen=True, slots=True)
class PlacedAdapters:
    """Room for adapters that a command makes; a rank of None is that of the adapters it loads."""

    slots: int
    rank: int | None


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What a placement says about its engine; None where it says nothing.

    `from_command` tells that these are an engine's own options: what is absent is then the engine's default, not what the problem asks.
    `places` maps a field to where it is written. `eager` = no CUDA graphs are captured. `draft` names the model of speculative decoding.
    """

    engine: str | None = None
    version: str | None = None
    model: str | None = None
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None
    weights: str | None = None
    kv_cache: str | None = None
    eager: bool = False
    draft: str | None = None
    speculation: PlacedSpeculation | None = None
    adapters: PlacedAdapters | None = None
    from_command: bool = False
    places: dict[str, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProposedReplica:
    """One replica: its degrees, and its GPUs in rank order (stage, then dp rank, then tp rank).

    `batch` is the number of sequences it is meant to hold, `partition` its layers per stage; None leaves them to the load and to the engine.
    `number` counts the replicas of its deployment where the file does; None = as they come.
    """

    degrees: Degrees
    gpus: tuple[ProposedGpu, ...]
    place: Place
    batch: int | None = None
    partition: tuple[int, ...] | None = None
    number: int | None = None


@dataclass(frozen=True, slots=True)
class ProposedDeployment:
    """All replicas of one deployment that run with the same settings."""

    name: str
    place: Place
    replicas: tuple[ProposedReplica, ...]
    settings: EngineSettings = field(default_factory=EngineSettings)


@dataclass(frozen=True)
class Proposal:
    """A whole placement: what kind of file it was, its deployments, and what was found wrong or odd while reading.

    `plan` is the document itself where the file is a plan of the planner's; `places` maps paths inside it to places in the file.
    """

    kind: str
    file: str
    deployments: tuple[ProposedDeployment, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    plan: PlanDocument | None = None
    places: dict[str, Place] = field(default_factory=dict)


def warning(code: str, message: str, hint: str, place: Place | None = None) -> Diagnostic:
    """A warning: worth knowing, and no reason to refuse."""
    return Diagnostic(code, message, hint, Severity.WARNING, place)


def note(code: str, message: str, hint: str, place: Place | None = None) -> Diagnostic:
    """A note, which only informs."""
    return Diagnostic(code, message, hint, Severity.NOTE, place)

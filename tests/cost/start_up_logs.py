"""Reads the table of start-up logs and asks the planner's memory about each of them."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.facts import Fact
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.layer_split import engine_partition
from planner.cost.memory import memory
from planner.cost.memory_detail import WEIGHT_TERMS, memory_by_stage, one_shape
from planner.cost.memory_other import counted, other_terms
from planner.cost.setting import Precision, Setting
from planner.plan.shape import Degrees
from planner.problem.precision import ASSUMED_SCHEMES

GIB = 2.0**30
TABLE = Path(__file__).with_name("start_up_logs.toml")


@dataclass(frozen=True)
class Log:
    """One worker's start-up log; sizes in GiB, None = not printed."""

    source: str
    model: str
    gpu: str
    engine: str
    utilization: float
    tp: int = 1
    pp: int = 1
    stage: int = 0
    rank: str = "sampling"
    memory: float | None = None
    context: int | None = None
    sequences: int = 0
    kv_heads: int | None = None
    weights: float | None = None
    kv: float | None = None
    derived: bool = False
    stated: bool = True
    fitted: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.model}-tp{self.tp}-pp{self.pp}-{self.engine.replace(' ', '-')}"


@dataclass(frozen=True)
class Attempt:
    """One published attempt to start: the context asked for, and whether it started."""

    source: str
    model: str
    gpu: str
    engine: str
    context: int
    fits: bool
    tp: int = 1
    pp: int = 1
    utilization: float = 0.9
    memory: float | None = None
    weights_dtype: str | None = None

    def __str__(self) -> str:
        return f"{self.model}-{self.gpu}-tp{self.tp}-pp{self.pp}-{self.context}"


def _rows(name: str) -> list[dict[str, Any]]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))[name]


def logs() -> list[Log]:
    """All logs of the table."""
    return [Log(**{key: tuple(value) if key == "fitted" else value for key, value in row.items()}) for row in _rows("log")]


def attempts() -> list[Attempt]:
    """All attempts of the table."""
    return [Attempt(**row) for row in _rows("attempt")]


def architecture_of(log: Log) -> ModelArchitecture:
    """The model of a log, with the kv heads its checkpoint had then."""
    found = model(log.model)
    if log.kv_heads is None:
        return found
    kinds = tuple(replace(kind, attention=replace(kind.attention, kv_heads=log.kv_heads)) for kind in found.layer_kinds)
    return replace(found, layer_kinds=kinds)


def setting_of(row: Log | Attempt, architecture: ModelArchitecture, context: int) -> Setting:
    """The engine as the log's user started it, everything else at its defaults."""
    card = gpu(row.gpu)
    if row.memory is not None:
        card = replace(card, memory=Fact(row.memory * GIB, "measured", row.source))
    asked = row.weights_dtype if isinstance(row, Attempt) else None
    scheme = ASSUMED_SCHEMES[asked] if asked is not None else architecture.quantization
    weights = scheme.weights if scheme is not None else architecture.dtype
    setting = Setting(
        architecture,
        Precision(weights, architecture.dtype, architecture.dtype, scheme),
        row.engine,
        card,
        (),
        float(context),
        0.0,
        1,
        context,
        row.utilization,
    )
    facts = setting.engine_facts
    sequences = row.sequences if isinstance(row, Log) else 0
    precision = replace(setting.precision, kv_cache=facts.kv_cache_dtype(architecture))
    return replace(setting, max_batched_tokens=facts.batched_tokens(card, context), max_num_seqs=sequences, precision=precision)


@dataclass(frozen=True)
class Predicted:
    """What the planner expects of a log's worker [GiB]."""

    weights: float
    kv: float


def predict(log: Log) -> Predicted:
    """Weights and KV room of the worker that printed the log, under the engine's own split of the layers."""
    architecture = architecture_of(log)
    setting = setting_of(log, architecture, log.context or architecture.max_position)
    facts, degrees = setting.engine_facts, Degrees(log.tp, log.pp)
    partition = engine_partition(facts, architecture.layers, log.pp)
    terms = memory_by_stage(setting, degrees, 1, partition)[log.stage].terms
    weights = sum(term.expected for term in terms if term.name in WEIGHT_TERMS)
    samples = log.stage == log.pp - 1 and (log.rank == "sampling" or facts.sampler_rank == "every")
    budget = setting.gpu_memory_utilization * setting.gpu.memory.value
    # A log's KV cache is what the engine's own budget leaves, whether or not graphs then find room outside of it.
    other = counted(facts, other_terms(setting, facts, one_shape(degrees, 1))[1], math.inf, last=samples)
    return Predicted(weights / GIB, (budget - weights - float(other[0])) / GIB)


def verdicts(attempt: Attempt) -> tuple[bool, bool, bool]:
    """Whether the attempt fits with the low, the expected and the high other terms."""
    architecture = model(attempt.model)
    setting = setting_of(attempt, architecture, attempt.context)
    partition = engine_partition(setting.engine_facts, architecture.layers, attempt.pp)
    table = memory(setting, one_shape(Degrees(attempt.tp, attempt.pp), 1), [partition])
    held = np.stack((table.max_sequences_high, table.max_sequences, table.max_sequences_low))[:, 0]
    return bool(held[0] >= 1), bool(held[1] >= 1), bool(held[2] >= 1)

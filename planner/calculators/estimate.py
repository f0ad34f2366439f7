"""One layout on paper: memory, compute, communication, efficiency, cost, legality, the ten steps and what would be better."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from planner.calculators.communication import Exchange, exchanges
from planner.calculators.layouts import Evaluated, evaluate_rows, select_times
from planner.calculators.question import Case, Question
from planner.calculators.recommendation import Recommendation, recommend
from planner.calculators.room import Room, room
from planner.candidates.checklist import checklist
from planner.catalog.step_times import step_constants
from planner.cost.money import hourly_cost, per_million_tokens, total_tokens_per_second
from planner.cost.paper import bubble
from planner.cost.power_law import PowerLaw
from planner.cost.tails import Tails, tails
from planner.diagnostics import Diagnostic
from planner.plan.document import CheckDocument
from planner.plan.shape import Degrees, MemoryFigures, Shape, TimeFigures


@dataclass(frozen=True)
class Options:
    """What an estimate may be asked besides the layout.

    `microbatches` M and `chunks` v choose the pipeline schedule of the bubble (v = 1: GPipe and 1F1B, v > 1: interleaved). `jitter_compute` and
    `jitter_exchange` are sigmas of log-normal factors, None = the engine's measured ones (`calibrated`) or none (`hockney`). `law` is a layer time
    fitted to a user's own runs, which then stands beside the prefill of the profile.
    """

    microbatches: int | None = None
    chunks: int = 1
    jitter_compute: float | None = None
    jitter_exchange: float | None = None
    seed: int = 0
    law: PowerLaw | None = None


@dataclass(frozen=True)
class Money:
    """Cost of one replica: $/h and $ per million tokens at this batch; None without a price."""

    price: float | None
    source: str
    per_hour: float | None
    per_million_output: float | None
    per_million_total: float | None


@dataclass(frozen=True)
class LawFigures:
    """A prompt's compute by a fitted law T_layer = a (d^2 B S)^b: one layer on one GPU, all layers over the TP ranks, and the first token with it [s]."""

    layer: float
    prefill_compute: float
    ttft: float


@dataclass(frozen=True)
class Estimate:
    """Everything about one layout of one case at one batch."""

    case: Case
    degrees: Degrees
    batch: int
    locality: str
    times: TimeFigures
    throughput: float
    algorithm: str
    exchanges: tuple[Exchange, ...]
    prefill_exchanges: tuple[Exchange, ...]
    room: Room
    findings: tuple[Diagnostic, ...]
    legal: bool
    checks: tuple[CheckDocument, ...]
    recommendation: Recommendation
    money: Money
    bubble: float
    tails: Tails | None
    law: LawFigures | None


def estimates(question: Question, options: Options) -> tuple[Estimate, ...]:
    """Estimate every layout asked about, in the order of the flags."""
    found = []
    for case in question.cases:
        rows = [(degrees, batch) for degrees in question.degrees() for batch in question.batches]
        table = evaluate_rows(case, rows)
        found += [_estimate(table, row, options) for row in range(len(rows))]
    return tuple(found)


def _estimate(table: Evaluated, row: int, options: Options) -> Estimate:
    case, (degrees, batch) = table.case, table.rows[row]
    setting, layout = case.setting, case.hardware.layout(degrees)
    figures = TimeFigures(**{name: float(getattr(table.times, name)[row]) for name in TimeFigures.__dataclass_fields__})
    idle = figures.bubble
    if options.microbatches is not None or options.chunks > 1:
        passes = options.microbatches if options.microbatches is not None else batch
        idle = float(bubble(degrees.pipeline_parallel, passes, options.chunks))
    figures = replace(figures, bubble=idle)
    algorithm = str(table.times.algorithm[row])
    held = room(table, row)
    found = (*table.findings(row), *held.findings)
    throughput = float(table.times.throughput[row])
    tokens = float(-(-batch // degrees.data_parallel))
    prompt = setting.prompt_tokens * (1.0 - setting.prefix_cache_hit_rate)
    levels = case.hardware.pool.levels
    return Estimate(
        case=case,
        degrees=degrees,
        batch=batch,
        locality=levels[layout.replica_level],
        times=figures,
        throughput=throughput,
        algorithm=algorithm,
        exchanges=exchanges(case, degrees, tokens, algorithm),
        prefill_exchanges=exchanges(case, degrees, prompt, "none"),
        room=held,
        findings=found,
        legal=table.legal(row),
        checks=_checks(table, row, figures, held, algorithm),
        recommendation=recommend(table, row),
        money=_money(case, degrees, throughput),
        bubble=idle,
        tails=_tails(table, row, options),
        law=_law(case, degrees, figures, options.law),
    )


def _checks(table: Evaluated, row: int, figures: TimeFigures, held: Room, algorithm: str) -> tuple[CheckDocument, ...]:
    """The ten steps of the plan's own checklist, with the step about the domain told as a calculator sees it."""
    del algorithm
    case, (degrees, batch) = table.case, table.rows[row]
    layout, pool = case.hardware.layout(degrees), case.hardware.pool
    steps = checklist("", case.context, _shape(table, row, figures, held, batch))
    if degrees.tensor_parallel == 1:
        return steps
    path = case.hardware.path(layout.tp_level)
    if case.hardware.crosses(degrees):
        words = f"TP {degrees.tensor_parallel} leaves its domain of {case.hardware.domain}: priced over {path.link.name}"
        domain = steps[7].model_copy(update={"message": words, "verdict": "fail"})
    else:
        size = case.hardware.domain if path.level == pool.scale_up_level else degrees.tensor_parallel
        words = f"TP {degrees.tensor_parallel} inside one {path.level} of {size} GPUs over {path.link.name}"
        domain = steps[7].model_copy(update={"message": words})
    return (*steps[:7], domain, *steps[8:])


def _shape(table: Evaluated, row: int, figures: TimeFigures, held: Room, batch: int) -> Shape:
    case, degrees, memory = table.case, table.rows[row][0], table.memory
    layout, pool = case.hardware.layout(degrees), case.hardware.pool
    return Shape(
        deployment=0,
        pool=0,
        degrees=degrees,
        batch=batch,
        locality=pool.levels[layout.replica_level],
        group_level=pool.levels[layout.tp_level],
        groups=layout.groups,
        group_size=layout.group_size,
        capacity=float(batch),
        price=0.0,
        comm_seconds=figures.tp_comm + figures.pp_comm + figures.ep_comm,
        throughput=float(table.times.throughput[row]),
        memory=MemoryFigures(
            budget=held.stage.budget,
            weights=float(memory.weights[row]),
            kv=float(memory.kv[row]),
            other=float(memory.other[row]),
            other_low=float(memory.other_low[row]),
            other_high=float(memory.other_high[row]),
            free=float(memory.free[row]),
            max_sequences=held.sequences,
            stage=held.stage.stage,
        ),
        times=figures,
        partition=memory.partitions[row],
        weights_dtype=case.setting.precision.weights,
        kv_dtype=case.setting.precision.kv_cache,
    )


def _money(case: Case, degrees: Degrees, throughput: float) -> Money:
    if case.price is None:
        return Money(None, "", None, None, None)
    per_hour = float(hourly_cost(np.array([degrees.gpus], dtype=np.float64), case.price)[0])
    setting = case.setting
    total = total_tokens_per_second(throughput, setting.prompt_tokens, setting.output_tokens)
    output = float(per_million_tokens(per_hour, throughput))
    return Money(case.price, case.price_source, per_hour, output, float(per_million_tokens(per_hour, total)))


def _tails(table: Evaluated, row: int, options: Options) -> Tails | None:
    setting = table.case.setting
    compute, exchange = options.jitter_compute, options.jitter_exchange
    if setting.profile == "calibrated":
        constants = step_constants(setting.engine, setting.gpu.architecture)
        compute = constants.jitter_compute if compute is None else compute
        exchange = constants.jitter_exchange if exchange is None else exchange
    if compute is None and exchange is None:
        return None
    return tails(select_times(table.times, row), compute or 0.0, exchange or 0.0, seed=options.seed)


def _law(case: Case, degrees: Degrees, figures: TimeFigures, law: PowerLaw | None) -> LawFigures | None:
    """A prompt by the fitted law; layers are shared by the ranks as the study shares them, T(1) / n."""
    if law is None:
        return None
    architecture = case.setting.architecture
    one = np.ones(1)
    layer = float(law.seconds(one * architecture.hidden_size, one, one * case.setting.prompt_tokens)[0])
    compute = architecture.layers * layer / degrees.tensor_parallel
    ttft = figures.queueing + compute + figures.prefill_comm
    return LawFigures(layer, compute, ttft if math.isfinite(ttft) else math.inf)


def codes(found: Iterable[Diagnostic]) -> tuple[str, ...]:
    """Codes of diagnostics, each once."""
    return tuple(dict.fromkeys(item.code for item in found))

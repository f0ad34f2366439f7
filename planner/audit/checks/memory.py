"""Weights, KV cache at the batch, and the least the engine needs besides fit every stage; claimed figures are the recomputed ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from planner.audit.case import Case
from planner.audit.columns import COLUMN, alike
from planner.audit.companions import draft_sequence_bytes, with_companions
from planner.audit.families import LARGEST_BATCH, Family, setting_of
from planner.audit.findings import GIB, differs, finding
from planner.audit.kv_cache import Context, mixes_windows, sequence_bytes_by_stage
from planner.audit.question import context_tokens
from planner.audit.unfolded import unfolded
from planner.audit.weights import weights_by_stage
from planner.cost.setting import Precision, Setting
from planner.diagnostics import Diagnostic
from planner.plan.document import MemoryDocument

# The auditor leaves out what is small (norms of heads, scales per channel, padding), so its counts may differ by so much.
WEIGHTS_TOLERANCE = 0.02
KV_TOLERANCE = 0.02
# Figures that are sums and products of others agree to rounding.
ARITHMETIC = 1e-6
ACTIVATION_BYTES = 2
ACTIVATION_BUFFERS = 3  # residual stream, normed input, output
CLAIMED = np.array([column for name, column in COLUMN.items() if name.startswith("memory.")])


@dataclass(frozen=True)
class Recount:
    """What one rank of each stage holds by the auditor's count [B], and the budget it must stay in."""

    weights: list[Fraction]
    kv: list[Fraction]
    least_other: float
    budget: float
    per_rank: int

    @property
    def fullest(self) -> int:
        """Stage whose weights and KV cache take most."""
        held = [weights + kv for weights, kv in zip(self.weights, self.kv, strict=True)]
        return held.index(max(held))


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every stage that does not fit, and for every claimed figure that is not the recomputed one."""
    case = unfolded(case)
    for family in case.families:
        if family.precision is None:
            continue
        recount = _recount(family, family.precision, case.problem.profile)
        distinct, which = alike(case.replicas.figures[family.rows][:, CLAIMED])
        for number, row in enumerate(distinct.tolist()):
            claimed = case.rows[int(family.rows[row])].document.memory
            faults = (*_fits(family, recount, claimed), *_claims(recount, claimed), *_sums(family, recount, claimed))
            for index in family.rows[which == number] if faults else ():
                for code, message, hint in faults:
                    yield finding(code, case.row_place(index), f"{family.title}: {message}", hint)


def _recount(family: Family, precision: Precision, profile: str) -> Recount:
    engine, partition = family.engine.on(family.pool.gpu), family.shape.partition
    setting = setting_of(family, precision, profile)
    keeps_windows = engine.sliding_window != "full" or not mixes_windows(family.architecture)
    context = Context(context_tokens(family.question), engine.block_size, keeps_windows)
    sequences = -(-family.shape.batch // family.shape.dp)
    held = sequence_bytes_by_stage(family.architecture, precision, family.degrees, partition, context)
    return Recount(
        weights=with_companions(
            weights_by_stage(family.architecture, precision, engine, family.degrees, partition), family, precision, engine
        ),
        kv=[sequences * per_sequence for per_sequence in [*held[:-1], held[-1] + draft_sequence_bytes(family, precision, context)]],
        least_other=least_other(family, setting),
        budget=setting.gpu_memory_utilization * family.pool.gpu.memory.value,
        per_rank=sequences,
    )


def least_other(family: Family, setting: Setting) -> float:
    """Least memory besides weights and KV that no start-up has been seen without [B].

    The engine's low figures for its context and communicators, and its low share of three activation buffers of a full step where it takes
    activations out of the budget.
    """
    engine = family.engine.on(family.pool.gpu)
    least = engine.context[0] + engine.communicator[0] * (family.degrees.stage_gpus > 1)
    least += engine.pipeline_communicator[0] * (family.degrees.pipeline_parallel > 1)
    if engine.activations_inside_budget:
        buffers = ACTIVATION_BUFFERS * setting.max_batched_tokens * family.architecture.hidden_size * ACTIVATION_BYTES
        least += engine.activation_low * buffers
    return least


def _gib(size: Fraction | float) -> float:
    return float(size) / GIB


def _fits(family: Family, recount: Recount, claimed: MemoryDocument) -> Iterator[tuple[str, str, str]]:
    """Stages too full, as (code, message, hint)."""
    other = max(claimed.other_low_gib * GIB, recount.least_other)
    for stage, (weights, kv) in enumerate(zip(recount.weights, recount.kv, strict=True)):
        missing = float(weights) + float(kv) + other - recount.budget
        if not missing <= 0:
            where = f" on stage {stage}" if len(recount.weights) > 1 else ""
            parts = f"weights {_gib(weights):.2f} + KV {_gib(kv):.2f} + other at least {_gib(other):.2f} of {_gib(recount.budget):.2f} GiB"
            code = "WEIGHTS_DO_NOT_FIT" if float(weights) + other > recount.budget else "KV_DOES_NOT_FIT"
            hint = "use more GPUs a replica or smaller weights" if code == "WEIGHTS_DO_NOT_FIT" else "hold fewer sequences or use more GPUs"
            yield code, f"short by {_gib(missing):.2f} GiB a GPU{where}: {parts}", hint
    asked = family.question.memory
    limit = family.engine.sequences(family.pool.gpu) if asked is None or asked.max_num_seqs is None else asked.max_num_seqs
    if recount.per_rank > limit:
        message = f"batch {family.shape.batch} puts {recount.per_rank} sequences on a data-parallel rank, the engine runs {limit} at most"
        yield "BATCH_ABOVE_ENGINE", message, "hold fewer sequences"
    if claimed.max_sequences < family.shape.batch:
        message = f"batch {family.shape.batch} is above the {claimed.max_sequences} sequences its own memory figures allow"
        yield "BATCH_ABOVE_MEMORY", message, "hold fewer sequences"


def _claims(recount: Recount, claimed: MemoryDocument) -> Iterator[tuple[str, str, str]]:
    """Claims that differ from the recount, as (code, message, hint)."""
    stages = len(recount.weights)
    if differs(claimed.budget_gib, _gib(recount.budget), ARITHMETIC):
        message = f"a budget of {claimed.budget_gib:.3f} GiB is claimed, the engine's share of the GPU is {_gib(recount.budget):.3f}"
        yield "MEMORY_BUDGET_MISMATCH", message, "the budget is the share of what the driver reports"
    if not 0 <= claimed.stage < stages:
        yield "STAGE_UNKNOWN", f"stage {claimed.stage} is called the fullest, there are {stages}", f"name a stage from 0 to {stages - 1}"
        return
    weights, kv = _gib(recount.weights[claimed.stage]), _gib(recount.kv[claimed.stage])
    if differs(claimed.weights_gib, weights, WEIGHTS_TOLERANCE):
        message = f"weights {claimed.weights_gib:.3f} GiB are claimed on stage {claimed.stage}, the layers there hold {weights:.3f}"
        yield "WEIGHTS_MISMATCH", message, f"they agree within {WEIGHTS_TOLERANCE:.0%}"
    if differs(claimed.kv_gib, kv, KV_TOLERANCE):
        message = f"KV cache {claimed.kv_gib:.3f} GiB is claimed on stage {claimed.stage}, {recount.per_rank} sequences take {kv:.3f}"
        yield "KV_MISMATCH", message, f"they agree within {KV_TOLERANCE:.0%}"
    fullest = recount.fullest
    held = [_gib(weights + kv) for weights, kv in zip(recount.weights, recount.kv, strict=True)]
    # The last stage needs at least as much besides as any other (it samples), so only beside an earlier one do the layers alone decide.
    known = held[claimed.stage] if claimed.stage < stages - 1 else claimed.weights_gib + claimed.kv_gib + claimed.other_gib
    least = held[fullest] if claimed.stage < stages - 1 else held[fullest] + _gib(recount.least_other)
    if least * (1 - WEIGHTS_TOLERANCE) > known:
        message = f"stage {claimed.stage} is called the fullest with {known:.3f} GiB, stage {fullest} holds at least {least:.3f}"
        yield "STAGE_NOT_FULLEST", message, f"give the figures of stage {fullest}"
    if claimed.other_low_gib * (1 + ARITHMETIC) < _gib(recount.least_other):
        message = (
            f"the low estimate of the rest is {claimed.other_low_gib:.3f} GiB, no start-up takes less than {_gib(recount.least_other):.3f}"
        )
        yield "OTHER_TOO_LOW", message, "count activations, communicators and the context"


def _sums(family: Family, recount: Recount, claimed: MemoryDocument) -> Iterator[tuple[str, str, str]]:
    """Sums inside the claim that do not add up, as (code, message, hint)."""
    free = claimed.budget_gib - claimed.weights_gib - claimed.kv_gib - claimed.other_gib
    if differs(claimed.free_gib, free, ARITHMETIC, ARITHMETIC):
        yield "SUM_MISMATCH", f"free memory {claimed.free_gib:.4f} GiB is claimed, the other figures leave {free:.4f}", "add up again"
    if not claimed.other_low_gib <= claimed.other_gib <= claimed.other_high_gib:
        band = f"{claimed.other_low_gib:.3f} <= {claimed.other_gib:.3f} <= {claimed.other_high_gib:.3f}"
        yield "SUM_MISMATCH", f"the rest does not lie in its own band: {band}", "low <= expected <= high"
    per_sequence = claimed.kv_gib / recount.per_rank
    most = -(-min(claimed.max_sequences, LARGEST_BATCH) // family.shape.dp)
    taken = claimed.weights_gib + claimed.other_gib + per_sequence * most
    if taken > claimed.budget_gib * (1 + ARITHMETIC):
        message = f"{claimed.max_sequences} sequences would take {taken:.3f} of {claimed.budget_gib:.3f} GiB"
        yield "MAX_SEQUENCES_MISMATCH", message, "count the sequences that fit beside weights and the rest"

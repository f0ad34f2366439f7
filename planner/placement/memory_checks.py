"""Does it fit as placed: every stage on its own GPUs term by term, the longest context, state slots, what lies outside the budget, a draft model.

Sources: vllm-project/vllm issues 6746 and 13061 (a context longer than the KV cache stops the start), 49064 (state slots), 15598 and 57475 (capture of
CUDA graphs outside the budget), 8731 (a draft model nobody counted).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from planner.catalog.models import model
from planner.cost.memory import weights_per_rank
from planner.cost.memory_detail import StageMemory, memory_diagnostics
from planner.cost.memory_other import graph_share
from planner.cost.memory_slots import state_slots
from planner.diagnostics import Diagnostic, PlannerError, Severity
from planner.placement.figures import CONTEXT_TERMS, WEIGHT_TERMS, Replica
from planner.placement.proposal import warning

GIB = 2.0**30
# What the checks below say better than the cost model's own sentences.
SAID_HERE = frozenset({"WEIGHTS_DO_NOT_FIT", "ACTIVATION", "KV_DOES_NOT_FIT", "GRAPH_MEM", "STATE_SLOTS"})


class Found(NamedTuple):
    """A finding about memory, and the stage it is about (None = the whole replica)."""

    diagnostic: Diagnostic
    stage: int | None = None


def memory_findings(replica: Replica, batch: int) -> Iterator[Found]:
    """Everything wrong or tight about the memory of one replica at its batch."""
    if not replica.sound:
        return
    stages = replica.by_stage(batch)
    short = [stage for stage in stages if stage.free < 0.0]
    for stage in short:
        found = _shortfall(replica, stage, batch)
        if math.fsum(term.low for term in stage.terms) <= stage.budget:
            found = replace(
                found, message=f"{found.message}; borderline: the least that activations and buffers have been seen to take would fit"
            )
        yield Found(found, stage.stage)
    partition = replica.partition
    for item in memory_diagnostics(replica.setting, replica.degrees, batch, partition):
        silent = item.code in SAID_HERE or (item.code == "PP_UNBALANCED" and not replica.own_split)
        if not silent and not (short and item.code == "MEMORY_BORDERLINE"):
            yield Found(item)
    if all(_weights(stage) <= stage.budget for stage in stages):
        yield from _longest(replica)
    if not short:
        yield from _slots(replica, stages)
    yield from _outside(replica)
    yield from _draft(replica, stages)


def _weights(stage: StageMemory) -> float:
    return math.fsum(term.expected for term in stage.terms if term.name in WEIGHT_TERMS)


def _words(stage: StageMemory) -> str:
    return " + ".join(f"{term.name} {term.expected / GIB:.1f}" for term in stage.terms if term.expected >= 0.05 * GIB)


def _shortfall(replica: Replica, stage: StageMemory, batch: int) -> Diagnostic:
    sizes = {term.name: term.expected for term in stage.terms}
    weights = _weights(stage)
    context = math.fsum(size for name, size in sizes.items() if name in CONTEXT_TERMS)
    rest = math.fsum(sizes.values()) - weights - context
    gpu = replica.stages[stage.stage].pool.gpu.name
    where = f" of stage {stage.stage}" if replica.degrees.pipeline_parallel > 1 else ""
    total = math.fsum(sizes.values())
    message = f"short by {-stage.free / GIB:.1f} GiB on every rank{where} ({gpu}): {_words(stage)} = {total / GIB:.1f} of {stage.budget / GIB:.1f} GiB"
    if weights + rest > stage.budget:
        code = "WEIGHTS_DO_NOT_FIT" if weights > stage.budget or weights > 0.5 * (weights + rest) else "ACTIVATION"
        room = max(stage.budget - rest, 1.0)
        ranks = replica.degrees.tensor_parallel * replica.degrees.pipeline_parallel
        enough = 2 ** math.ceil(math.log2(max(weights * ranks / room, 1.0))) if room > GIB else 0
        hint = (
            f"take about {enough} such GPUs a replica, smaller weights, or larger GPUs"
            if enough > ranks
            else "balance the stages, or lower max_batched_tokens"
        )
        return Diagnostic(code, message, hint)
    sequences = -(-batch // replica.degrees.data_parallel)
    holds = int((stage.budget - weights - rest) // max(context / sequences, 1.0))
    hint = (
        f"hold at most {holds * replica.degrees.data_parallel} sequences"
        if holds
        else "shorten the context, halve it with an 8-bit KV cache"
    )
    return Diagnostic("KV_DOES_NOT_FIT", message, f"{hint}, or use more GPUs a replica")


def _longest(replica: Replica) -> Iterator[Found]:
    """The KV cache holds one sequence of the longest context that the engine is started for.

    The expected terms decide, as they do for the planner's own shapes; a fit that hangs on them is called borderline.
    """
    asked = replica.running.context
    if asked is None:
        return
    stages = replica.by_stage(replica.degrees.data_parallel, asked)
    if all(stage.free >= 0.0 for stage in stages):
        return
    holds = replica.longest()
    message = f"the engine is started for {asked:,} tokens, the KV cache of the fullest rank holds about {holds:,}"
    hint = f"set the longest context to at most {holds}" if holds else "shorten the context"
    hint += ", use an 8-bit KV cache, or more GPUs a replica"
    if all(math.fsum(term.low for term in stage.terms) <= stage.budget for stage in stages):
        message += "; borderline: the least that activations and buffers have been seen to take would fit"
    severity = Severity.ERROR if replica.running.strict else Severity.WARNING
    yield Found(Diagnostic("KV_DOES_NOT_FIT", message, hint, severity))


def _slots(replica: Replica, stages: tuple[StageMemory, ...]) -> Iterator[Found]:
    """Hybrid models: as many state slots as sequences the engine admits."""
    degrees = replica.degrees
    fullest = min(stages, key=lambda stage: stage.free)
    held = math.fsum(term.expected for term in fullest.terms if term.name in CONTEXT_TERMS)
    slots = state_slots(replica.setting, replica.running.engine, degrees.tensor_parallel, degrees.pipeline_parallel, fullest.free + held)
    admitted = replica.context.sequences_per_rank
    if slots is None or slots >= admitted:
        return
    named = replica.running.sequences is not None
    message = f"the engine admits {admitted} sequences{'' if named else ' by default'}, the pool has state slots for {slots}"
    refuses = named and replica.running.strict
    hint = f"set the largest number of sequences to at most {slots}"
    yield Found(Diagnostic("STATE_SLOTS", message, hint, Severity.ERROR if refuses else Severity.WARNING))


def _outside(replica: Replica) -> Iterator[Found]:
    """CUDA graphs live in what the budget leaves of the GPU; fewer running sequences are captured in fewer sizes."""
    rules, setting = replica.running.engine, replica.setting
    if rules.graphs_inside_budget or replica.running.settings.eager:
        return
    share = graph_share(replace(setting, max_num_seqs=replica.running.sequences or setting.max_num_seqs), rules)
    outside = (1.0 - setting.gpu_memory_utilization) * setting.gpu.memory.value
    low, needed, high = (size * share for size in rules.graphs)
    if not rules.activations_inside_budget or outside >= max(needed, GIB):
        return
    most = 1.0 - max(needed, GIB) / setting.gpu.memory.value
    message = f"{setting.gpu_memory_utilization:.0%} leaves {outside / GIB:.2f} GiB outside the budget; capturing CUDA graphs takes about "
    message += f"{needed / GIB:.2f} GiB ({low / GIB:.1f} to {high / GIB:.1f})"
    severity = Severity.ERROR if outside < needed else Severity.WARNING
    yield Found(Diagnostic("GRAPH_MEM", message, f"set gpu_memory_utilization to at most {most:.2f}", severity))


def _draft(replica: Replica, stages: tuple[StageMemory, ...]) -> Iterator[Found]:
    """Weights of a draft model, cut as its target is, beside what the target needs."""
    named = replica.running.settings.draft
    if named is None or replica.running.architecture.draft is not None:
        return  # no draft, or one that is counted with the model
    hint = "lower gpu_memory_utilization until the draft has room beside the target"
    try:
        architecture = model(named)
    except PlannerError:
        message = f"the draft model {named[:80]} is not in the catalog: its weights are not counted"
        yield Found(warning("DRAFT_MODEL_MEMORY", message, hint))
        return
    precision = replace(replica.setting.precision, weights=architecture.dtype, quantization=architecture.quantization)
    setting = replace(replica.setting, architecture=architecture, precision=precision)
    alone = replace(replica.degrees, pipeline_parallel=1, expert_parallel=1, data_parallel=1)
    held = float(weights_per_rank(setting, replace(replica, degrees=alone).shapes([1]), [(architecture.layers,)])[0])
    free = min(stage.free for stage in stages)
    message = f"the draft model {architecture.name} takes {held / GIB:.1f} GiB of weights a GPU, {max(free, 0.0) / GIB:.1f} GiB are free beside its target"
    severity = Severity.ERROR if held > free else Severity.WARNING
    yield Found(Diagnostic("DRAFT_MODEL_MEMORY", message, hint, severity))

"""Memory of one shape term by term, for reports: what each stage holds, the longest sequence, and a sentence when it does not fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor
from typing import Final

import numpy as np

from planner.cost.layer_split import unbalanced_partition
from planner.cost.memory import memory
from planner.cost.memory_companions import draft_sequence_bytes
from planner.cost.memory_kv import kind_sequence_bytes, kv_bytes_per_sequence
from planner.cost.memory_other import counted, graph_share, other_terms
from planner.cost.memory_slots import state_slots
from planner.cost.memory_weights import rank_weights
from planner.cost.setting import FloatArray, Setting, ShapeArrays
from planner.diagnostics import Diagnostic, Severity
from planner.plan.shape import Degrees

GIB: Final = 2.0**30
# Less than this outside the budget and capture of CUDA graphs, or a neighbour process, ends in an out-of-memory (vllm issues 15598 and 57475).
ABSOLUTE_HEADROOM: Final = 1.0 * GIB
WEIGHT_TERMS: Final = ("layers", "embedding", "head", "draft model", "vision tower", "position table")
CONTEXT_TERMS: Final = ("KV cache", "draft's KV cache", "recurrent states")


@dataclass(frozen=True, slots=True)
class MemoryTerm:
    """One term of the memory of a rank [B]: what was counted, and the bounds between which it may lie."""

    name: str
    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class StageMemory:
    """Memory of the fullest rank of one stage: layers it holds, its terms, the budget they share [B], and what is left."""

    stage: int
    layers: int
    terms: tuple[MemoryTerm, ...]
    budget: float

    @property
    def free(self) -> float:
        """Budget less all expected terms; negative = does not fit [B]."""
        return self.budget - sum(term.expected for term in self.terms)

    @property
    def largest(self) -> MemoryTerm:
        """Term that takes most."""
        return max(self.terms, key=lambda term: term.expected)


def one_shape(degrees: Degrees, batch: int) -> ShapeArrays:
    """A table of one shape; levels are left at the smallest, memory does not use them."""

    def column(value: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([value], dtype=np.int64)

    return ShapeArrays(
        tensor_parallel=column(degrees.tensor_parallel),
        pipeline_parallel=column(degrees.pipeline_parallel),
        expert_parallel=column(degrees.expert_parallel),
        data_parallel=column(degrees.data_parallel),
        batch=column(batch),
        tp_level=column(0),
        stage_level=column(0),
        stage_scopes=column(1),
        replica_level=column(0),
    )


def memory_by_stage(setting: Setting, degrees: Degrees, batch: int, partition: tuple[int, ...] | None = None) -> tuple[StageMemory, ...]:
    """List every stage's terms: layers, embedding, head, vision tower, KV cache, states, activations, graphs, communicators, context.

    Terms that the engine keeps outside its budget appear with what the budget must give up for them (often 0), their bounds in full.
    """
    shapes = one_shape(degrees, batch)
    facts = setting.engine_facts
    architecture = setting.architecture
    layers = partition if partition is not None else memory(setting, shapes).partitions[0]
    columns = shapes.tensor_parallel, shapes.pipeline_parallel, shapes.expert_parallel, shapes.data_parallel
    held = rank_weights(architecture, setting.precision, facts, *columns)
    context = setting.prompt_tokens + setting.output_tokens
    kept = kind_sequence_bytes(architecture, setting.precision, facts, shapes.tensor_parallel, context)
    sequences = -(-batch // degrees.data_parallel)
    budget = setting.gpu_memory_utilization * setting.gpu.memory.value
    margin = setting.gpu.memory.value - budget
    answer = []
    start = 0
    for stage, count in enumerate(layers):
        inside = architecture.layer_sequence[start : start + count]
        start += count
        last = stage == len(layers) - 1
        weights = [("layers", sum(float(held.layers[0, index]) for index in inside))]
        if stage == 0:
            weights.append(("embedding", float(held.embedding[0])))
        if last:
            weights.append(("head", float(held.head[0])))
            weights.append(("draft model", float(held.draft[0])))
        weights.append(("vision tower", float(held.vision[0])))
        weights.append(("position table", float(held.positions[0])))
        attending = [index for index in inside if architecture.layer_kinds[index].recurrent is None]
        recurrent = [index for index in inside if architecture.layer_kinds[index].recurrent is not None]
        weights.append(("KV cache", sequences * sum(float(kept[0, index]) for index in attending)))
        weights.append(("recurrent states", sequences * sum(float(kept[0, index]) for index in recurrent)))
        if last:
            drafted = draft_sequence_bytes(architecture.draft, setting.precision, facts, shapes.tensor_parallel, context)
            weights.append(("draft's KV cache", sequences * float(drafted[0])))
        terms = [MemoryTerm(name, size, size, size) for name, size in weights if size]
        low, expected, high = (counted(facts, bound, margin, last=last) for bound in other_terms(setting, facts, shapes))
        terms += _other(setting, shapes, last, expected, (low, high))
        answer.append(StageMemory(stage, count, tuple(terms), budget))
    return tuple(answer)


def _other(
    setting: Setting, shapes: ShapeArrays, last: bool, expected: FloatArray, bounds: tuple[FloatArray, FloatArray]
) -> list[MemoryTerm]:
    """Name the terms besides weights and KV; what lives outside the budget is one term with what of it exceeds its room."""
    facts = setting.engine_facts
    low, middle, high = other_terms(setting, facts, shapes)
    named = {"CUDA context": "context", "communicators": "communicators"}
    if facts.activations_inside_budget:
        named["activations"] = "activation_last" if last else "activation"
    if facts.graphs_inside_budget:
        named["CUDA graphs"] = "graphs"
    terms = [MemoryTerm(name, *(float(getattr(bound, field)[0]) for bound in (middle, low, high))) for name, field in named.items()]
    spilled = [
        float(total[0]) - sum(getattr(term, bound) for term in terms)
        for total, bound in ((expected, "expected"), (bounds[0], "low"), (bounds[1], "high"))
    ]
    if spilled[2] > 1.0:
        terms.append(MemoryTerm("graphs and activations beyond the unbudgeted part", *spilled))
    return [term for term in terms if term.high > 0.0]


def longest_sequence(setting: Setting, degrees: Degrees, partition: tuple[int, ...] | None = None) -> int:
    """Tokens a lone sequence may have before the tightest stage is full; 0 when the weights leave no room.

    Windowed layers and states cost a constant once they are full, so the room is divided by what full attention adds per token.
    """
    shapes = one_shape(degrees, degrees.data_parallel)
    layers = partition if partition is not None else memory(setting, shapes).partitions[0]
    low, high = 0, 1 << 40
    while low < high:
        middle = (low + high + 1) // 2
        longer = replace(setting, prompt_tokens=float(middle), output_tokens=0.0)
        if int(memory(longer, shapes, [layers]).max_sequences[0]) >= 1:
            low = middle
        else:
            high = middle - 1
        if low >= 1 << 39:
            break  # nothing grows with the context: states and windows only
    return low


def reported_tokens(setting: Setting, degrees: Degrees, kv_bytes: float) -> float:
    """Tokens that `kv_bytes` of KV cache on one rank hold by the engine's own report: as many sequences of `max_model_len` as fit, in tokens.

    Sliding layers are charged window - 1 + max_batched_tokens a sequence, as vLLM's start-up log does.
    """
    shapes = one_shape(degrees, degrees.data_parallel)
    per_sequence = kv_bytes_per_sequence(
        setting.architecture,
        setting.precision,
        setting.engine_facts,
        shapes.tensor_parallel,
        float(setting.max_model_len),
        float(setting.max_batched_tokens),
    )
    return kv_bytes * degrees.pipeline_parallel / float(per_sequence[0]) * setting.max_model_len


def memory_diagnostics(setting: Setting, degrees: Degrees, batch: int, partition: tuple[int, ...] | None = None) -> tuple[Diagnostic, ...]:
    """Say everything that is wrong or tight about the memory of one shape.

    WEIGHTS_DO_NOT_FIT, ACTIVATION and KV_DOES_NOT_FIT name the stage, the shortfall and the largest term; GRAPH_MEM warns of less than 1 GiB outside the
    budget, KV_REPLICATED of kv heads held more than once, STATE_SLOTS of fewer state slots than the engine's default number of sequences, MEMORY_BORDERLINE of a fit that depends on the other terms, and PP_UNBALANCED of an engine's own split.
    """
    stages = memory_by_stage(setting, degrees, batch, partition)
    fullest = min(stages, key=lambda stage: stage.free)
    found = list(_shortfall(fullest, degrees, batch))
    if not found:
        worst = min(stage.free + sum(term.expected for term in stage.terms) - sum(term.high for term in stage.terms) for stage in stages)
        if worst < 0.0:
            message = (
                f"{fullest.free / GIB:.1f} GiB are free, but activations and communicators may take {-worst / GIB:.1f} GiB more than that"
            )
            found.append(Diagnostic("MEMORY_BORDERLINE", message, "lower the batch or the batched tokens", Severity.WARNING))
    found += graph_findings(setting)
    found += _replicated(setting, degrees)
    found += _slots(setting, degrees, fullest)
    unbalanced = engine_split(setting, degrees)
    return tuple(found if unbalanced is None else [*found, unbalanced])


def graph_findings(setting: Setting) -> list[Diagnostic]:
    """GRAPH_MEM when what the budget leaves is little for CUDA graphs, an error when it is less than they are expected to take."""
    facts, outside = setting.engine_facts, (1.0 - setting.gpu_memory_utilization) * setting.gpu.memory.value
    if outside >= ABSOLUTE_HEADROOM or facts.graphs_inside_budget:
        return []
    low, expected, high = (size * graph_share(setting, facts) for size in facts.graphs)
    message = (
        f"a share of {setting.gpu_memory_utilization:.0%} leaves {outside / GIB:.2f} GiB outside the budget; capturing CUDA graphs takes "
    )
    message += f"{expected / GIB:.2f} GiB ({low / GIB:.1f} to {high / GIB:.1f})"
    hint = f"set gpu_memory_utilization to at most {floor(100 * (1.0 - ABSOLUTE_HEADROOM / setting.gpu.memory.value)) / 100:.2f}"
    return [Diagnostic("GRAPH_MEM", message, hint, Severity.ERROR if outside < expected else Severity.WARNING)]


def _shortfall(stage: StageMemory, degrees: Degrees, batch: int) -> list[Diagnostic]:
    if stage.free >= 0.0:
        return []
    where = f" of stage {stage.stage} (of {degrees.pipeline_parallel})" if degrees.pipeline_parallel > 1 else ""
    size = {term.name: term.expected for term in stage.terms}
    context = sum(size.get(name, 0.0) for name in CONTEXT_TERMS)
    weights = sum(size.get(name, 0.0) for name in WEIGHT_TERMS)
    rest = sum(size.values()) - context - weights
    sequences = -(-batch // degrees.data_parallel)
    message = f"does not fit by {-stage.free / GIB:.1f} GiB: every rank{where} holds {weights / GIB:.1f} GiB of weights, {context / GIB:.1f} of KV cache "
    message += (
        f"for {sequences} sequence{'s' if sequences > 1 else ''} and {rest / GIB:.1f} of other, the budget is {stage.budget / GIB:.1f}"
    )
    hint = f"the largest term is {stage.largest.name}, {stage.largest.expected / GIB:.1f} GiB"
    if weights > stage.budget:
        return [Diagnostic("WEIGHTS_DO_NOT_FIT", message, hint)]
    if weights + rest > stage.budget:
        return [Diagnostic("ACTIVATION", message, hint)]
    return [Diagnostic("KV_DOES_NOT_FIT", message, hint)]


def _replicated(setting: Setting, degrees: Degrees) -> list[Diagnostic]:
    """Note how often each kv head is held, which tensor parallelism beyond their number costs."""
    t = degrees.tensor_parallel
    heads = [kind.attention.kv_heads for kind, _ in setting.architecture.kind_counts() if kind.attention is not None]
    copies = max((t // count for count in heads if count < t), default=1)
    if copies <= 1:
        return []
    message = f"{min(heads)} kv heads over TP{t}: every rank of {copies} holds the same KV cache, so {t} ranks hold it {copies} times"
    return [Diagnostic("KV_REPLICATED", message, "data-parallel attention or TP up to the kv heads holds more sequences", Severity.NOTE)]


def _slots(setting: Setting, degrees: Degrees, stage: StageMemory) -> list[Diagnostic]:
    """Warn of fewer state slots than sequences: an engine that shares pages between attention and states refuses to start so."""
    facts = setting.engine_facts
    context = sum(term.expected for term in stage.terms if term.name in CONTEXT_TERMS)
    slots = state_slots(setting, facts, degrees.tensor_parallel, degrees.pipeline_parallel, stage.free + context)
    asked = setting.max_num_seqs or facts.sequences(setting.gpu)
    if slots is None or slots >= asked:
        return []
    way = "is started for" if setting.max_num_seqs else "admits by default"
    message = f"{facts.title} {way} {asked} sequences, the pool has state slots for {slots}: it refuses to start"
    severity = Severity.ERROR if setting.max_num_seqs else Severity.WARNING
    return [Diagnostic("STATE_SLOTS", message, f"set the largest number of sequences to at most {slots}", severity)]


def engine_split(setting: Setting, degrees: Degrees) -> Diagnostic | None:
    """PP_UNBALANCED when the engine's own split of the layers fills a stage clearly more than the balanced one."""
    if degrees.pipeline_parallel == 1 or degrees.pipeline_parallel > setting.architecture.layers:
        return None
    facts = setting.engine_facts
    shapes = one_shape(degrees, degrees.data_parallel)
    columns = shapes.tensor_parallel, shapes.pipeline_parallel, shapes.expert_parallel, shapes.data_parallel
    held = rank_weights(setting.architecture, setting.precision, facts, *columns)
    loads = [float(held.layers[0, index]) for index in setting.architecture.layer_sequence]
    return unbalanced_partition(facts, loads, degrees.pipeline_parallel, float(held.embedding[0]), float(held.head[0]))

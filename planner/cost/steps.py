"""Passes through a stage and the pipeline they form: parts of a step per layer, summed over stages, paced by the slowest one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.catalog.architecture import LayerKind, ModelArchitecture
from planner.catalog.step_times import StepConstants
from planner.cost.compute import Matrices, layer_matrices, matrices_seconds
from planner.cost.decode import attention_seconds, prompt_attention_seconds
from planner.cost.memory_weights import layer_bytes, tensor_bytes
from planner.cost.partition import balanced_partition
from planner.cost.prefill import new_prompt_tokens, output_tokens
from planner.cost.setting import FloatArray, IntArray, Precision, Setting, ShapeArrays
from planner.cost.tensors import head_tensors

# Rows of an array of parts, shape [4, n].
COMPUTE, TP_COMM, EP_COMM, FIXED = range(4)
PARTS = 4


@dataclass(frozen=True)
class LayerTerms:
    """What one layer of a kind costs a rank, per shape [n], before the number of tokens is known.

    `attend` [s] a decoding sequence, `prompt_attend` [s] a prompt token. `reductions` all-reduces over the tensor-parallel group,
    `exchanges` dispatches to the experts and back, both per pass. `share` is the part of a full layer (mixer and feed-forward) that this kind has.
    """

    kind: LayerKind
    matrices: Matrices
    attend: FloatArray
    prompt_attend: FloatArray
    reductions: FloatArray
    exchanges: FloatArray
    share: float


@dataclass(frozen=True)
class Pass:
    """Tokens of one pass through a stage, and what its exchanges take, per shape [n].

    `sequences` decode on the busiest rank, `stage_sequences` on the whole stage; `prompt` and `stage_prompt` prompt tokens come on top. `reduce` and `exchange` are
    the times of one all-reduce and of one dispatch and combine [s].
    """

    sequences: FloatArray
    stage_sequences: FloatArray
    prompt: FloatArray
    stage_prompt: FloatArray
    reduce: FloatArray
    exchange: FloatArray


def layer_terms(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> tuple[LayerTerms, ...]:
    """Terms of every kind of layer of the model, in the order of `layer_kinds`."""
    context = np.asarray(setting.prompt_tokens, dtype=np.float64) + output_tokens(setting) / 2.0
    spread = shapes.data_parallel > 1
    found = []
    for kind in setting.architecture.layer_kinds:
        mixer = kind.attention is not None or kind.recurrent is not None
        part = kind.feed_forward
        routed = part is not None and part.experts > 0
        exchanged = spread & routed
        found.append(
            LayerTerms(
                kind=kind,
                matrices=layer_matrices(kind, setting, shapes, constants),
                attend=attention_seconds(kind, setting, shapes, constants, context),
                prompt_attend=prompt_attention_seconds(kind, setting, shapes, constants) / new_prompt_tokens(setting),
                reductions=float(mixer) + np.where(exchanged, 0.0, float(part is not None)),
                exchanges=exchanged.astype(np.float64),
                share=(float(mixer) + float(part is not None)) / 2.0,
            )
        )
    return tuple(found)


def layer_parts(terms: LayerTerms, one: Pass, expert_parallel: FloatArray, constants: StepConstants) -> FloatArray:
    """Parts of one layer in one pass [s], shape [4, n]."""
    rank_tokens = one.sequences + one.prompt
    stage_tokens = one.stage_sequences + one.stage_prompt
    parts = np.empty((PARTS, rank_tokens.size))
    parts[COMPUTE] = (
        matrices_seconds(terms.matrices, rank_tokens, stage_tokens, expert_parallel)
        + one.sequences * terms.attend
        + one.prompt * terms.prompt_attend
    )
    parts[TP_COMM] = terms.reductions * one.reduce
    parts[EP_COMM] = terms.exchanges * one.exchange
    routing = constants.moe_layer if terms.matrices.experts else 0.0
    parts[FIXED] = constants.layer * terms.share + routing + constants.sequence * one.sequences
    return parts


def head_parts(matrices: Matrices, sequences: FloatArray, expert_parallel: FloatArray) -> FloatArray:
    """Parts of the output head in one pass [s], shape [4, n]: one row of logits a sequence."""
    parts = np.zeros((PARTS, sequences.size))
    parts[COMPUTE] = matrices_seconds(matrices, sequences, sequences, expert_parallel)
    return parts


@dataclass(frozen=True)
class Pipeline:
    """A step over the stages of a pipeline, per shape.

    `parts` [4, n] add up to the time of a step, hops between stages apart; `through` [4, n] are those of one pass through all stages, `slowest` [n] the time of
    the slowest stage [s].
    """

    parts: FloatArray
    through: FloatArray
    slowest: FloatArray


def pipeline(
    layers: tuple[FloatArray, ...],
    head: FloatArray,
    setting: Setting,
    pipeline_parallel: IntArray,
    passes: FloatArray,
    step_seconds: float,
) -> Pipeline:
    """Sum the parts of layers over stages.

    m microbatches go round p stages: the step takes max(sum of the stages, m x the slowest stage).

    Parameters
    ----------
    layers
        Parts of one layer of every kind in one pass, each [4, n].
    head
        Parts of the output head, on the last stage, [4, n].
    setting
        Model and precision, for the balanced split of layers.
    pipeline_parallel
        Stages p of every shape.
    passes
        Microbatches m of every shape.
    step_seconds
        Spent once in every pass of every stage [s].
    """
    size = pipeline_parallel.size
    through = np.zeros((PARTS, size))
    slowest_parts = np.zeros((PARTS, size))
    slowest = np.zeros(size)
    for degree in np.unique(pipeline_parallel):
        rows = np.flatnonzero(pipeline_parallel == degree)
        whole = rows.size == size
        for counts, last, times in stages(setting.architecture, setting.precision, int(degree)):
            stage = np.zeros((PARTS, rows.size))
            for count, parts in zip(counts, layers, strict=True):
                if count:
                    stage += count * (parts if whole else parts[:, rows])
            if last:
                stage += head if whole else head[:, rows]
            stage[FIXED] += step_seconds
            total = stage.sum(axis=0)
            if whole and degree == 1:
                return Pipeline(stage, stage, total)
            through[:, rows] += times * stage
            slower = total > slowest[rows]
            slowest[rows] = np.where(slower, total, slowest[rows])
            slowest_parts[:, rows] = np.where(slower, stage, slowest_parts[:, rows])
    paced = passes * slowest >= through.sum(axis=0)
    return Pipeline(np.where(paced, passes * slowest_parts, through), through, slowest)


@lru_cache(maxsize=1024)
def stages(architecture: ModelArchitecture, precision: Precision, degree: int) -> tuple[tuple[tuple[int, ...], bool, int], ...]:
    """Different stages of a split into `degree`: layers of every kind, whether the head is on it, and how many stages are like that.

    The split balances weight bytes as `cost.partition` does; more stages than layers are as good as one per layer.
    """
    kinds = [layer_bytes(kind, architecture, precision) for kind in architecture.layer_kinds]
    loads = [kinds[index] for index in architecture.layer_sequence]
    head = sum(tensor_bytes(tensor, precision, architecture.dtype) for tensor in head_tensors(architecture))
    counted: dict[tuple[tuple[int, ...], bool], int] = {}
    start = 0
    split = balanced_partition(loads, min(degree, len(loads)), last=head)
    for number, length in enumerate(split):
        inside = architecture.layer_sequence[start : start + length]
        counts = tuple(inside.count(index) for index in range(len(architecture.layer_kinds)))
        key = (counts, number == len(split) - 1)
        counted[key] = counted.get(key, 0) + 1
        start += length
    return tuple((counts, last, times) for (counts, last), times in counted.items())

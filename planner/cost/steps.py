"""Passes through a stage and the pipeline they form: parts of a step per layer, summed over stages, paced by the slowest one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from planner.catalog.architecture import AttentionKind, LayerKind, ModelArchitecture
from planner.catalog.step_times import StepConstants, of_dtype
from planner.cost.adapters import AdapterTerms, adapter_terms
from planner.cost.compute import Matrices, kernel_dtype, layer_matrices, matrices_seconds
from planner.cost.decode import attention_seconds, prompt_attention_seconds
from planner.cost.pipeline_split import distinct_splits
from planner.cost.prefill import new_prompt_tokens, output_tokens
from planner.cost.setting import FloatArray, Setting, ShapeArrays
from planner.cost.tensor import EXPERT_SPLITS
from planner.cost.tensors import layer_tensors

# Rows of an array of parts, shape [4, n].
COMPUTE, TP_COMM, EP_COMM, FIXED = range(4)
PARTS = 4


@dataclass(frozen=True)
class LayerTerms:
    """What one layer of a kind costs a rank, per shape [n], before the number of tokens is known.

    `attend` [s] a decoding sequence, `prompt_attend` [s] a prompt token. `reductions` all-reduces over the tensor-parallel group,
    `exchanges` dispatches to the experts and back, both per pass. `layer` is what kernels spend in every pass, `prompt_layer` more in one with prompt tokens [s].
    `adapters` come on top where requests use some.
    """

    kind: LayerKind
    matrices: Matrices
    attend: FloatArray
    prompt_attend: FloatArray
    reductions: FloatArray
    exchanges: FloatArray
    layer: float
    prompt_layer: float
    adapters: AdapterTerms | None = None


@dataclass(frozen=True)
class Pass:
    """Tokens of one pass through a stage, and what its exchanges take, per shape [n].

    `sequences` decode on the busiest rank, `stage_sequences` on the whole stage; `prompt` and `stage_prompt` prompt tokens come on top. `reduce` and `exchange` are
    the times of one all-reduce and of one dispatch and combine [s]. `carries_prompts` tells whether there is a chunk of a prompt in it.
    `queries` tokens of every sequence are computed, more than one where proposed tokens are verified.
    """

    sequences: FloatArray
    stage_sequences: FloatArray
    prompt: FloatArray
    stage_prompt: FloatArray
    reduce: FloatArray
    exchange: FloatArray
    carries_prompts: bool = False
    queries: float = 1.0


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
        if kind.attention is not None and kind.attention.kind is AttentionKind.CROSS and not kind.attention.cross_tokens:
            found.append(_skipped(kind, shapes))
            continue
        found.append(
            LayerTerms(
                kind=kind,
                matrices=layer_matrices(kind, setting, shapes, constants),
                attend=attention_seconds(kind, setting, shapes, constants, context),
                prompt_attend=prompt_attention_seconds(kind, setting, shapes, constants) / new_prompt_tokens(setting),
                reductions=float(mixer) + np.where(exchanged, 0.0, float(part is not None)),
                exchanges=exchanged.astype(np.float64),
                layer=_layer_seconds(kind, setting, constants),
                prompt_layer=constants.prompt_layer * _share(kind) + (constants.prompt_moe_layer if routed else 0.0),
                adapters=adapter_terms(kind, setting, shapes, constants),
            )
        )
    return tuple(found)


def _skipped(kind: LayerKind, shapes: ShapeArrays) -> LayerTerms:
    """Terms of a layer that attends to images where requests bring none: it is passed by."""
    zeros = np.zeros(shapes.batch.shape)
    return LayerTerms(kind, Matrices(zeros, zeros, zeros, zeros), zeros, zeros, zeros, zeros, 0.0, 0.0)


def _share(kind: LayerKind) -> float:
    """Part of a full layer, mixer and feed-forward, that a kind has."""
    return (float(kind.attention is not None or kind.recurrent is not None) + float(kind.feed_forward is not None)) / 2.0


def _layer_seconds(kind: LayerKind, setting: Setting, constants: StepConstants) -> float:
    """Seconds of kernels in one layer: the common part, what an unusual mixer adds, and routing."""
    seconds = constants.layer * _share(kind)
    if kind.recurrent is not None:
        seconds += constants.mixer_layer.get("recurrent", 0.0)
    if kind.attention is not None and kind.attention.kind in (AttentionKind.MLA, AttentionKind.COMPRESSED):
        seconds += constants.mixer_layer.get("mla", 0.0)
    # Layers over compressed tokens take about what latent attention does, indexer included: DeepSeek-V4-Flash without speculation needs 4.3 to 5.2 ms a token on
    # eight B200 (sgl-project/sglang pull request 29538), 4.9 by these constants. The indexer of DeepSeek-V3.2 runs kernels that are not fused.
    if kind.attention is not None and kind.attention.kind is not AttentionKind.COMPRESSED and kind.attention.index_topk is not None:
        seconds += constants.mixer_layer.get("sparse", 0.0)
    experts = [tensor for tensor in layer_tensors(kind, setting.architecture.hidden_size) if tensor.split in EXPERT_SPLITS]
    if experts:
        seconds += of_dtype(constants.moe_layer, kernel_dtype(experts[0], setting.precision, setting.architecture.dtype))
    return seconds


def layer_parts(terms: LayerTerms, one: Pass, expert_parallel: FloatArray, constants: StepConstants) -> FloatArray:
    """Parts of one layer in one pass [s], shape [4, n]."""
    rank_tokens = one.queries * one.sequences + one.prompt
    stage_tokens = one.queries * one.stage_sequences + one.stage_prompt
    parts = np.empty((PARTS, rank_tokens.size))
    parts[COMPUTE] = (
        matrices_seconds(terms.matrices, rank_tokens, stage_tokens, expert_parallel, constants.evenness, constants.expert_tile)
        + one.sequences * terms.attend
        + one.prompt * terms.prompt_attend
    )
    parts[TP_COMM] = terms.reductions * one.reduce
    parts[EP_COMM] = terms.exchanges * one.exchange
    fixed = terms.prompt_layer + terms.layer if one.carries_prompts else terms.layer
    parts[FIXED] = fixed
    if terms.adapters is not None:
        parts[COMPUTE] += terms.adapters.compute(one.sequences, rank_tokens)
        parts[FIXED] += terms.adapters.kernels
    return parts


def head_parts(matrices: Matrices, rows: FloatArray, expert_parallel: FloatArray) -> FloatArray:
    """Parts of the output head in one pass [s], shape [4, n]: a row of logits for every token that is decoded or verified."""
    parts = np.zeros((PARTS, rows.size))
    parts[COMPUTE] = matrices_seconds(matrices, rows, rows, expert_parallel, 1.0, 0.0)
    return parts


@dataclass(frozen=True)
class StageSort:
    """Stages of one sort, per shape [n]: layers of every kind on one of them, whether the head is there, and how many stages are like that (0 = none)."""

    layers: tuple[FloatArray, ...]
    head: FloatArray
    stages: FloatArray


@dataclass(frozen=True)
class Pipeline:
    """A step over the stages of a pipeline, per shape.

    `parts` [4, n] add up to the time of a step, hops between stages apart; `through` [4, n] are those of one pass through all stages, `slowest` [n] the time of
    the slowest stage [s].
    """

    parts: FloatArray
    through: FloatArray
    slowest: FloatArray


def stage_sorts(setting: Setting, shapes: ShapeArrays) -> tuple[StageSort, ...]:
    """Sorts of stages as columns, of the split that memory counts; a shape with fewer sorts than another has stages = 0 in the last ones.

    More stages than layers are as good as one per layer.
    """
    held = replace(shapes, pipeline_parallel=np.minimum(shapes.pipeline_parallel, setting.architecture.layers))
    splits, where = distinct_splits(setting, held)
    found = [stages(setting.architecture, split) for split in splits]
    kinds = len(setting.architecture.layer_kinds)
    absent: tuple[tuple[int, ...], bool, int] = ((0,) * kinds, False, 0)
    sorts = []
    for rank in range(max(map(len, found), default=0)):
        rows = [sort[rank] if rank < len(sort) else absent for sort in found]
        counts = np.array([row[0] for row in rows], dtype=np.float64).reshape(len(rows), kinds)
        sorts.append(
            StageSort(
                layers=tuple(counts[:, kind][where] for kind in range(kinds)),
                head=np.array([row[1] for row in rows], dtype=np.float64)[where],
                stages=np.array([row[2] for row in rows], dtype=np.float64)[where],
            )
        )
    return tuple(sorts)


def pipeline(
    layers: tuple[FloatArray, ...], head: FloatArray, sorts: tuple[StageSort, ...], passes: FloatArray, step: FloatArray
) -> Pipeline:
    """Sum the parts of layers over stages.

    m microbatches go round p stages: the step takes max(sum of the stages, m x the slowest stage).

    Parameters
    ----------
    layers
        Parts of one layer of every kind in one pass, each [4, n].
    head
        Parts of the output head, on the last stage, [4, n].
    sorts
        Stages of every shape.
    passes
        Microbatches m of every shape.
    step
        Spent once in every pass of every stage, whatever part of the model is on it [s].
    """
    through = np.zeros_like(head)
    slowest_parts = np.zeros_like(head)
    slowest = np.zeros(head.shape[1])
    for sort in sorts:
        stage = sort.head * head
        for count, parts in zip(sort.layers, layers, strict=True):
            stage += count * parts
        stage[FIXED] += step * (sort.stages > 0)
        through += sort.stages * stage
        total = stage.sum(axis=0)
        slower = total > slowest
        if slower.all():
            slowest, slowest_parts = total, stage
        elif slower.any():
            slowest = np.where(slower, total, slowest)
            slowest_parts = np.where(slower, stage, slowest_parts)
    paced = passes * slowest >= through.sum(axis=0)
    return Pipeline(np.where(paced, passes * slowest_parts, through), through, slowest)


@lru_cache(maxsize=1024)
def stages(architecture: ModelArchitecture, split: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], bool, int], ...]:
    """Different stages of a split: layers of every kind, whether the head is on it, and how many stages are like that."""
    counted: dict[tuple[tuple[int, ...], bool], int] = {}
    start = 0
    for number, length in enumerate(split):
        inside = architecture.layer_sequence[start : start + length]
        counts = tuple(inside.count(index) for index in range(len(architecture.layer_kinds)))
        key = (counts, number == len(split) - 1)
        counted[key] = counted.get(key, 0) + 1
        start += length
    return tuple((counts, last, times) for (counts, last), times in counted.items())

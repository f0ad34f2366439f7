"""Passes through a stage and the pipeline they form: parts of a step per layer, summed over stages, paced by the slowest one."""

from __future__ import annotations

from collections.abc import Sequence
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
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays, per_row
from planner.cost.tensor import EXPERT_SPLITS
from planner.cost.tensors import layer_tensors

# Rows of an array of parts, shape [4, n].
COMPUTE, TP_COMM, EP_COMM, FIXED = range(4)


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
    layer: FloatArray | float
    prompt_layer: FloatArray | float
    adapters: AdapterTerms | None = None

    def at(self, rows: IntArray) -> LayerTerms:
        """The same for some of the shapes, in any order and number."""
        return LayerTerms(
            self.kind,
            self.matrices.at(rows),
            self.attend[rows],
            self.prompt_attend[rows],
            self.reductions[rows],
            self.exchanges[rows],
            per_row(self.layer, rows),
            per_row(self.prompt_layer, rows),
            None if self.adapters is None else self.adapters.at(rows),
        )


@dataclass(frozen=True)
class Passes:
    """Tokens of two passes through a stage, one without and one with a chunk of a prompt, shape [2, n], and what their exchanges take.

    `sequences` [n] decode on the busiest rank of both, `prompt` [n] prompt tokens of that rank are in the second; `tokens` and `stage_tokens` are all
    tokens of the rank and of the whole stage. `reduce` and `exchange` are the times of one all-reduce and of one dispatch and combine [s], the latter None where
    no shape has them.
    """

    sequences: FloatArray
    prompt: FloatArray
    tokens: FloatArray
    stage_tokens: FloatArray
    reduce: FloatArray
    exchange: FloatArray | None


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
    return LayerTerms(kind, Matrices(zeros, zeros, zeros, zeros, zeros), zeros, zeros, zeros, zeros, 0.0, 0.0)


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


def layer_parts(terms: LayerTerms, both: Passes, expert_parallel: FloatArray, constants: StepConstants) -> FloatArray:
    """Parts of one layer in a pass without and in one with a chunk of a prompt [s], shape [2, parts, n].

    Parts are compute, tp_comm, ep_comm and fixed, without ep_comm where nothing is exchanged.
    """
    parts = np.empty((2, 3 if both.exchange is None else 4, both.sequences.size))
    parts[:, COMPUTE] = matrices_seconds(
        terms.matrices, both.tokens, both.stage_tokens, expert_parallel, constants.evenness, constants.expert_tile
    )
    parts[:, COMPUTE] += both.sequences * terms.attend
    parts[1, COMPUTE] += both.prompt * terms.prompt_attend
    parts[:, TP_COMM] = terms.reductions * both.reduce
    if both.exchange is not None:
        parts[:, EP_COMM] = terms.exchanges * both.exchange
    parts[0, -1], parts[1, -1] = terms.layer, terms.prompt_layer + terms.layer
    if terms.adapters is not None:
        parts[:, COMPUTE] += terms.adapters.compute(both.sequences, both.tokens)
        parts[:, -1] += terms.adapters.kernels
    return parts


def head_seconds(matrices: Matrices, rows: FloatArray, expert_parallel: FloatArray) -> FloatArray:
    """Time of the output head in one pass [s], shape [n]: a row of logits for every token that is decoded or verified."""
    return matrices_seconds(matrices, rows, rows, expert_parallel, 1.0, 0.0)


@dataclass(frozen=True)
class StageSort:
    """Stages of one sort, per shape [n]: layers of every kind on one of them, whether the head is there, and how many stages are like that (0 = none)."""

    layers: tuple[FloatArray, ...]
    head: FloatArray
    stages: FloatArray

    def at(self, rows: IntArray) -> StageSort:
        """The same for some of the shapes, in any order and number."""
        return StageSort(tuple(count[rows] for count in self.layers), self.head[rows], self.stages[rows])


@dataclass(frozen=True)
class Pipeline:
    """Passes over the stages of a pipeline, hops between them apart.

    `parts` [parts, n] of the mean step add up to its time, `through` [parts, n] are those of one pass with a chunk of a prompt through all stages, `slowest` [n] its
    time in the slowest stage [s].
    """

    parts: FloatArray
    through: FloatArray
    slowest: FloatArray


def stage_sorts(setting: Setting, shapes: ShapeArrays) -> tuple[StageSort, ...]:
    """Sorts of stages as columns, of the split that memory counts; a shape with fewer sorts than another has stages = 0 in the last ones.

    More stages than layers are as good as one per layer.
    """
    held = replace(shapes, pipeline_parallel=np.minimum(shapes.pipeline_parallel, setting.architecture.layers))
    architecture = setting.architecture
    splits, where = distinct_splits(setting, held)
    numbers: dict[tuple[int, ...], int] = {}
    where = np.array([numbers.setdefault(split, len(numbers)) for split in splits], dtype=np.int64)[where]
    known = _known_stages(architecture)
    found = [known[split] if split in known else known.setdefault(split, stages(architecture, split)) for split in numbers]
    kinds = len(architecture.layer_kinds)
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


def pipeline(layers: Sequence[FloatArray], head: FloatArray, sorts: Sequence[StageSort], passes: FloatArray, each: FloatArray) -> Pipeline:
    """Sum the parts of layers over stages.

    m microbatches go round p stages: the step takes max(sum of the stages, m x the slowest stage).

    Parameters
    ----------
    layers
        Parts of one layer of every kind in the mean pass and in one with a chunk of a prompt, each [2, parts, n].
    head
        The same of the output head, on the last stage; or its time alone, shape [n].
    sorts
        Stages of every shape; shapes with more sorts come before those with fewer.
    passes
        Microbatches m of every shape.
    each
        Spent once in every pass of every stage, whatever part of the model is on it [s], shape [n].
    """
    through = np.empty_like(layers[0])
    slowest, slowest_parts = np.empty((2, passes.size)), np.empty(through.shape[1:])
    for rank, sort in enumerate(sorts):
        rows = slice(np.count_nonzero(sort.stages))
        stage = sort.layers[0][rows] * layers[0][:, :, rows]
        if head.ndim == 1:
            stage[:, COMPUTE] += sort.head[rows] * head[rows]
        else:
            stage += sort.head[rows] * head[..., rows]
        for count, parts in zip(sort.layers[1:], layers[1:], strict=True):
            stage += count[rows] * parts[:, :, rows]
        stage[:, -1] += each[rows]
        total = _summed(stage)
        if not rank:
            np.multiply(sort.stages, stage, out=through)
            slowest[:], slowest_parts[:] = total, stage[0]
            continue
        np.copyto(slowest_parts[:, rows], stage[0], where=total[0] > slowest[0, rows])
        np.maximum(slowest[:, rows], total, out=slowest[:, rows])
        stage *= sort.stages[rows]
        through[:, :, rows] += stage
    pace = passes * slowest[0]
    parts = np.where(pace >= _summed(through[:1])[0], passes * slowest_parts, through[0])
    return Pipeline(parts, through[1], slowest[1])


def _summed(parts: FloatArray) -> FloatArray:
    """Sum over the parts [m, parts, n] in their order, shape [m, n]."""
    total = parts[:, 0] + parts[:, 1]
    for index in range(2, parts.shape[1]):
        total += parts[:, index]
    return total


@lru_cache(maxsize=64)
def _known_stages(architecture: ModelArchitecture) -> dict[tuple[int, ...], tuple[tuple[tuple[int, ...], bool, int], ...]]:
    """Stages of the splits of a model that were asked for."""
    del architecture
    return {}


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

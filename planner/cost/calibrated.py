"""The `calibrated` profile: an additive step time with constants measured per engine.

One pass of a microbatch through a stage, per layer:

    max(W / (BW eta_m), tokens x 2P / (F eta_f))         weights read, or multiplied with, whichever is longer; experts apart
    + sequences x KV / (BW eta_kv)                       cache read, window-limited, constant for recurrent layers
    + c_layer + c_moe + sequences x c_seq                kernels, routing, and what grows with the sequences; none shrinks with t
    + reductions x AR(tokens d b)                        measured all-reduces of the engine at that size and t
    + dispatch and combine                               where data-parallel ranks share experts

and c_step a pass, the head on the last stage. A share of the passes carries a chunk of prompts (`cost.prefill`), whose tokens go through the same terms with their own
attention over the prompt; TPOT is the mean over passes with and without. m = min(p, B) microbatches go round p stages (`cost.steps`). Requests whose
prompt is being taken up do not decode: by Little's law B_d = B out TPOT / (TTFT + out TPOT) of the B sequences held do (`cost.serving`), found by iteration.

Constants: `catalog.step_times`. Errors against published measurements: docs/accuracy.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.step_times import StepConstants, step_constants
from planner.cost.compute import Matrices, head_matrices
from planner.cost.prefill import chunks, most_decoding, new_prompt_tokens, output_tokens, prompt_share
from planner.cost.serving import prefill_wait_seconds, queueing_seconds
from planner.cost.setting import FloatArray, Setting, ShapeArrays, TimesTable
from planner.cost.steps import (
    COMPUTE,
    EP_COMM,
    FIXED,
    TP_COMM,
    LayerTerms,
    Pass,
    StageSort,
    head_parts,
    layer_parts,
    layer_terms,
    pipeline,
    stage_sorts,
)
from planner.cost.traffic import algorithms, exchange_seconds, hop_seconds, reduce_seconds

# Rounds of Little's law after the first guess that all sequences decode; the third changes nothing above 0.1 % in practice.
ROUNDS = 3
BLOCK = 16384


@dataclass(frozen=True)
class Step:
    """Mean step and first token of n shapes [s]; `parts` are compute, tp_comm, ep_comm and fixed, shape [4, n].

    `hops` is the time between pipeline stages in a step, `prompt_parts` the parts of taking up one prompt, `prompt_hops` its hops, `wait` the wait for the
    prefill, `decoding` the sequences that decode on average.
    """

    parts: FloatArray
    hops: FloatArray
    prompt_parts: FloatArray
    prompt_hops: FloatArray
    wait: FloatArray
    decoding: FloatArray

    @property
    def tpot(self) -> FloatArray:
        """Mean time per output token [s]."""
        return np.asarray(self.parts.sum(axis=0) + self.hops, dtype=np.float64)

    @property
    def first_token(self) -> FloatArray:
        """Time to the first token, the wait for a slot apart [s]."""
        return np.asarray(self.wait + self.prompt_parts.sum(axis=0) + self.prompt_hops, dtype=np.float64)


def evaluate_calibrated(setting: Setting, shapes: ShapeArrays) -> TimesTable:
    """Times of all shapes by the calibrated profile."""
    constants = step_constants(setting.engine, setting.gpu.architecture)
    size = shapes.batch.size
    if size <= BLOCK:
        return _table(setting, shapes, constants)
    # Blocks that stay in the processor's cache: a million shapes at once take three times as long.
    tables = [_table(setting, _rows(shapes, slice(start, start + BLOCK)), constants) for start in range(0, size, BLOCK)]
    return TimesTable(**{name: np.concatenate([getattr(table, name) for table in tables]) for name in TimesTable.__dataclass_fields__})


def _rows(shapes: ShapeArrays, rows: slice) -> ShapeArrays:
    return ShapeArrays(**{name: getattr(shapes, name)[rows] for name in ShapeArrays.__dataclass_fields__})


def _table(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> TimesTable:
    step = step_times(setting, shapes, constants)
    alone = _single_gpu(setting, shapes, constants)
    compute, tp_comm, ep_comm, fixed = step.parts[[COMPUTE, TP_COMM, EP_COMM, FIXED]]
    tpot = step.tpot
    gpus = (shapes.tensor_parallel * shapes.data_parallel * shapes.pipeline_parallel).astype(np.float64)
    throughput = step.decoding / tpot
    passes = microbatches(shapes)
    stages = shapes.pipeline_parallel.astype(np.float64)
    service = step.first_token + output_tokens(setting) * tpot
    queueing = step.wait + queueing_seconds(setting.request_rate, shapes.batch.astype(np.float64), service)
    prefill_compute = step.prompt_parts[COMPUTE] + step.prompt_parts[FIXED]
    prefill_comm = step.prompt_parts[TP_COMM] + step.prompt_parts[EP_COMM] + step.prompt_hops
    return TimesTable(
        tpot=tpot,
        ttft=queueing + prefill_compute + prefill_comm,
        compute=compute,
        tp_comm=tp_comm,
        pp_comm=step.hops,
        ep_comm=ep_comm,
        fixed=fixed,
        prefill_compute=prefill_compute,
        prefill_comm=prefill_comm,
        queueing=queueing,
        overhead=(tp_comm + step.hops + ep_comm) / (compute + fixed),
        efficiency=throughput / gpus / alone.throughput,
        latency_efficiency=alone.tpot / (gpus * tpot),
        bubble=(stages - 1.0) / (passes + stages - 1.0),
        throughput=throughput,
        algorithm=algorithms(setting, shapes, _sequences(shapes)[0]),
    )


@dataclass(frozen=True)
class _Alone:
    """One GPU of the kind at the batch of every shape, whether or not the model fits it: TPOT [s] and output tokens/s."""

    tpot: FloatArray
    throughput: FloatArray


def _single_gpu(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> _Alone:
    batches, where = np.unique(shapes.batch, return_inverse=True)
    ones, zeros = np.ones_like(batches), np.zeros_like(batches)
    single = ShapeArrays(ones, ones, ones, ones, batches, zeros, zeros, ones, zeros)
    step = step_times(setting, single, constants)
    return _Alone(step.tpot[where], (step.decoding / step.tpot)[where])


def step_times(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> Step:
    """Mean step of every shape with given constants, the number of decoding sequences found by Little's law.

    `setting.prompt_tokens` and `setting.output_tokens` may be arrays [n] here: fits evaluate rows of many workloads at once.
    """
    terms = layer_terms(setting, shapes, constants)
    head = head_matrices(setting, shapes, constants)
    batch = shapes.batch.astype(np.float64)
    outputs = output_tokens(setting)
    most = np.minimum(most_decoding(setting, batch, microbatches(shapes), shapes.data_parallel.astype(np.float64)), batch)
    decoding = most
    sorts = stage_sorts(setting, shapes.pipeline_parallel)
    step = _step(setting, shapes, constants, terms, head, sorts, decoding)
    for _ in range(ROUNDS):
        served = outputs * step.tpot
        decoding = np.minimum(batch * served / (served + step.first_token), most)
        step = _step(setting, shapes, constants, terms, head, sorts, decoding)
    # Where prompts do not fit into the steps, those that wait for one make up the rest of the batch.
    starved = np.maximum(batch / np.maximum(step.decoding, 1e-12) - 1.0, 0.0) * outputs * step.tpot - step.first_token
    waiting = np.where(most < batch, np.maximum(starved, 0.0), 0.0)
    return replace(step, wait=step.wait + waiting)


def microbatches(shapes: ShapeArrays) -> FloatArray:
    """Microbatches in flight, m = min(p, B)."""
    return np.minimum(shapes.pipeline_parallel, np.maximum(shapes.batch, 1)).astype(np.float64)


def _sequences(shapes: ShapeArrays) -> tuple[FloatArray, FloatArray]:
    """Sequences of the largest microbatch on the busiest rank, and on its whole stage."""
    passes = microbatches(shapes)
    stage = np.ceil(np.maximum(shapes.batch, 1) / passes)
    return np.ceil(stage / shapes.data_parallel), stage


def _step(
    setting: Setting,
    shapes: ShapeArrays,
    constants: StepConstants,
    terms: tuple[LayerTerms, ...],
    head: Matrices,
    sorts: tuple[StageSort, ...],
    decoding: FloatArray,
) -> Step:
    batch = np.maximum(shapes.batch, 1).astype(np.float64)
    expert_parallel = shapes.expert_parallel.astype(np.float64)
    data_parallel = shapes.data_parallel.astype(np.float64)
    passes = microbatches(shapes)
    # A step that a sequence takes part in holds that sequence, and of the others those that decode on average.
    active = (1.0 + (batch - 1.0) * decoding / batch) / batch
    rank, stage = (sequences * active for sequences in _sequences(shapes))
    others = (1.0 - 1.0 / batch) * decoding / passes
    share = prompt_share(setting, others * new_prompt_tokens(setting) / output_tokens(setting), data_parallel, passes)
    zeros = np.zeros_like(batch)
    plain_reduce = reduce_seconds(setting, shapes, rank)
    full_reduce = np.maximum(reduce_seconds(setting, shapes, rank + share.rank_tokens), plain_reduce)
    mixed_reduce = plain_reduce + constants.prefill_exchange * (full_reduce - plain_reduce)
    plain = Pass(rank, stage, zeros, zeros, plain_reduce, exchange_seconds(setting, shapes, stage))
    full_exchange = exchange_seconds(setting, shapes, stage + share.stage_tokens)
    mixed = Pass(rank, stage, share.rank_tokens, share.stage_tokens, mixed_reduce, full_exchange, carries_prompts=True)
    plain_layers = [layer_parts(one, plain, expert_parallel, constants) for one in terms]
    mixed_layers = tuple(layer_parts(one, mixed, expert_parallel, constants) for one in terms)
    mean_layers = tuple(low + share.share * (high - low) for low, high in zip(plain_layers, mixed_layers, strict=True))
    logits = head_parts(head, rank, expert_parallel)
    stages = shapes.pipeline_parallel
    mean = pipeline(mean_layers, logits, sorts, passes, constants.step)
    prompt = pipeline(mixed_layers, logits, sorts, np.ones_like(passes), constants.step)
    further = chunks(setting) - 1.0  # later chunks follow one stage behind the other
    prompt_parts = prompt.through * (1.0 + further * prompt.slowest / prompt.through.sum(axis=0))
    prompt_parts[FIXED] += constants.first_token
    prompt_seconds = prompt_parts.sum(axis=0) - constants.first_token
    return Step(
        parts=mean.parts,
        hops=(stages - 1.0) * hop_seconds(setting, shapes, rank + share.share * share.rank_tokens),
        prompt_parts=prompt_parts,
        prompt_hops=(stages - 1.0) * hop_seconds(setting, shapes, rank + share.rank_tokens),
        wait=prefill_wait_seconds(batch, mean.parts.sum(axis=0), prompt_seconds, constants.prompt_queue, constants.prompt_crowding),
        decoding=decoding,
    )

"""The `calibrated` profile: an additive step time with constants measured per engine.

One pass of a microbatch through a stage, per layer:

    max(W / (BW eta_m), tokens x 2P / (F eta_f))         weights read, or multiplied with, whichever is longer; experts apart
    + sequences x KV / (BW eta_kv)                       cache read, window-limited, constant for recurrent layers
    + c_layer + c_moe                                    kernels and routing; they do not shrink with t
    + reductions x AR(tokens d b)                        measured all-reduces of the engine at that size and t
    + dispatch and combine                               where data-parallel ranks share experts

and c_step + sequences x layers x c_seq a pass (every stage prepares all its sequences anew), the head on the last stage. A share of the passes carries a chunk of prompts (`cost.prefill`), whose tokens go through the same terms with their own
attention over the prompt; TPOT is the mean over passes with and without. m = min(p, B) microbatches go round p stages (`cost.steps`). Requests whose
prompt is being taken up do not decode: by Little's law B_d = B out TPOT / (TTFT + out TPOT) of the B sequences held do (`cost.serving`), found by iteration (`cost.closed_loop`).

Where a problem says how many proposed tokens are accepted, a step verifies several tokens of every sequence and TPOT is its time over those gained (`cost.speculation`).

Constants: `catalog.step_times`. Errors against published measurements: docs/accuracy.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.catalog.step_times import StepConstants, step_constants
from planner.cost.closed_loop import microbatches, sequences, step_and_traffic, step_times
from planner.cost.distinct import distinct
from planner.cost.prefill import output_tokens
from planner.cost.serving import queueing_seconds
from planner.cost.setting import FloatArray, Setting, ShapeArrays, TimesTable
from planner.cost.steps import COMPUTE, EP_COMM, FIXED, TP_COMM

BLOCK = 16384  # shapes evaluated at once


def evaluate_calibrated(setting: Setting, shapes: ShapeArrays, *, against_one: bool = True) -> TimesTable:
    """Times of all shapes by the calibrated profile; `efficiency` and `latency_efficiency` are NaN unless they are compared `against_one` GPU."""
    constants = step_constants(setting.engine, setting.gpu.architecture)
    size = shapes.batch.size
    if size <= BLOCK:
        return _table(setting, shapes, constants, against_one=against_one)
    # Blocks that stay in the processor's cache: a million shapes at once take three times as long.
    blocks = [_rows(shapes, slice(start, start + BLOCK)) for start in range(0, size, BLOCK)]
    tables = [_table(setting, block, constants, against_one=against_one) for block in blocks]
    return TimesTable(**{name: np.concatenate([getattr(table, name) for table in tables]) for name in TimesTable.__dataclass_fields__})


def _rows(shapes: ShapeArrays, rows: slice) -> ShapeArrays:
    return ShapeArrays(**{name: getattr(shapes, name)[rows] for name in ShapeArrays.__dataclass_fields__})


def _table(setting: Setting, shapes: ShapeArrays, constants: StepConstants, *, against_one: bool) -> TimesTable:
    step, sent = step_and_traffic(setting, shapes, constants)
    unknown = np.full(shapes.batch.shape, np.nan)
    alone = _single_gpu(setting, shapes, constants) if against_one else _Alone(unknown, unknown)
    compute, tp_comm, ep_comm, fixed = step.parts[[COMPUTE, TP_COMM, EP_COMM, FIXED]]
    tpot = step.tpot
    gpus = (shapes.tensor_parallel * shapes.data_parallel * shapes.pipeline_parallel).astype(np.float64)
    throughput = step.decoding / tpot
    passes = microbatches(shapes)
    speculation = setting.architecture.speculation
    queries = 1.0 if speculation is None else speculation.queries
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
        algorithm=sent.algorithm(queries * sequences(shapes)[0]),
    )


@dataclass(frozen=True)
class _Alone:
    """One GPU of the kind at the batch of every shape, whether or not the model fits it: TPOT [s] and output tokens/s."""

    tpot: FloatArray
    throughput: FloatArray


def _single_gpu(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> _Alone:
    batches, where = distinct(shapes.batch)
    ones, zeros = np.ones_like(batches), np.zeros_like(batches)
    single = ShapeArrays(ones, ones, ones, ones, batches, zeros, zeros, ones, zeros)
    step = step_times(setting, single, constants)
    return _Alone(step.tpot[where], (step.decoding / step.tpot)[where])

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

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from planner.catalog.step_times import step_constants
from planner.cost.closed_loop import ClosedLoop, microbatches
from planner.cost.distinct import distinct, distinct_rows
from planner.cost.prefill import output_tokens
from planner.cost.serving import queueing_seconds
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays, TimesTable, joined_shapes
from planner.cost.steps import COMPUTE, EP_COMM, FIXED, TP_COMM

BLOCK = 8192  # shapes evaluated at once: a million of them at once leave the processor's cache and take three times as long


def evaluate_calibrated(setting: Setting, shapes: ShapeArrays, *, against_one: bool = True) -> TimesTable:
    """Times of all shapes by the calibrated profile; without `against_one` as `CalibratedTimes.at` gives them."""
    return CalibratedTimes.of(setting, shapes).at(np.arange(shapes.batch.size), shapes.batch, against_one=against_one)


class CalibratedTimes:
    """Shapes ready to be asked for their times at any batch.

    `alike` [n] numbers the shapes, with one number for those whose times are the same at every batch.
    """

    def __init__(self, loop: ClosedLoop, shapes: ShapeArrays, alone: IntArray, offered: tuple[float, FloatArray | float]) -> None:
        """Take the shapes of a loop, among them single GPUs: `alone` [n] is the one each shape is compared with; `offered` are the request rate [1/s] and the output tokens."""
        self.loop, self.shapes, self.alone, self._offered = loop, shapes, alone, offered
        self.alike = loop.alike

    @classmethod
    def of(cls, setting: Setting, shapes: ShapeArrays) -> CalibratedTimes:
        """Prepare shapes of one setting."""
        one, zero = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        single = ShapeArrays(one, one, one, one, one, zero, zero, one, zero)
        whole = joined_shapes((shapes, single))
        loop = ClosedLoop.of(setting, whole, step_constants(setting.engine, setting.gpu.architecture))
        alone = np.full(whole.batch.size, shapes.batch.size, dtype=np.int64)
        return cls(loop, whole, alone, (setting.request_rate, output_tokens(setting)))

    @classmethod
    def joined(cls, parts: Sequence[CalibratedTimes]) -> CalibratedTimes:
        """The shapes of several settings of one `sort`; those of a part begin at its `first_rows`."""
        first = cls.first_rows(parts)
        shapes = joined_shapes([part.shapes for part in parts])
        alone = np.concatenate([part.alone + start for part, start in zip(parts, first, strict=True)])
        return cls(ClosedLoop.joined([part.loop for part in parts]), shapes, alone, (0.0, 0.0))

    @staticmethod
    def first_rows(parts: Sequence[CalibratedTimes]) -> list[int]:
        """Rows at which the shapes of parts begin once they are joined."""
        return list(accumulate((part.alone.size for part in parts[:-1]), initial=0))

    @property
    def sort(self) -> Hashable:
        """What times must have in common to be joined; None where they are never joined."""
        return None if self._offered[0] else self.loop.sort

    def at(self, rows: IntArray, batch: IntArray, *, against_one: bool = True) -> TimesTable:
        """Times of some shapes [n], by their row and in any order and number, each at a batch of its own.

        Without `against_one` they are not compared with one GPU at the same batch, which leaves `efficiency` and `latency_efficiency` NaN, and `algorithm`
        is not told.
        """
        blocks = [slice(start, start + BLOCK) for start in range(0, rows.size, BLOCK)]
        alone = self._single_gpu(self.alone[rows], batch) if against_one else None
        tables = [self._table(rows[block], batch[block], None if alone is None else alone.at(block)) for block in blocks or [slice(0, 0)]]
        if len(tables) == 1:
            return tables[0]
        return TimesTable(**{name: np.concatenate([getattr(table, name) for table in tables]) for name in TimesTable.__dataclass_fields__})

    def _table(self, rows: IntArray, batch: IntArray, alone: _Alone | None) -> TimesTable:
        shapes, (rate, outputs) = self.shapes, self._offered
        step = self.loop.step(rows, batch)
        unknown = np.full(batch.shape, np.nan)
        compute, tp_comm, ep_comm, fixed = step.parts[[COMPUTE, TP_COMM, EP_COMM, FIXED]]
        tpot = step.tpot
        stages = shapes.pipeline_parallel[rows]
        gpus = (shapes.tensor_parallel[rows] * shapes.data_parallel[rows] * stages).astype(np.float64)
        throughput = step.decoding / tpot
        passes = microbatches(batch, stages)
        waiting = step.wait
        if rate:
            service = step.first_token + outputs * tpot
            waiting = step.wait + queueing_seconds(rate, batch.astype(np.float64), service)
        prefill_compute = step.prompt_parts[COMPUTE] + step.prompt_parts[FIXED]
        prefill_comm = step.prompt_parts[TP_COMM] + step.prompt_parts[EP_COMM] + step.prompt_hops
        return TimesTable(
            tpot=tpot,
            ttft=waiting + prefill_compute + prefill_comm,
            compute=compute,
            tp_comm=tp_comm,
            pp_comm=step.hops,
            ep_comm=ep_comm,
            fixed=fixed,
            prefill_compute=prefill_compute,
            prefill_comm=prefill_comm,
            queueing=waiting,
            overhead=(tp_comm + step.hops + ep_comm) / (compute + fixed),
            efficiency=unknown if alone is None else throughput / gpus / alone.throughput,
            latency_efficiency=unknown if alone is None else alone.tpot / (gpus * tpot),
            bubble=(stages - 1.0) / (passes + stages - 1.0),
            throughput=throughput,
            algorithm=np.full(batch.shape, "") if alone is None else self.loop.algorithm(rows, batch),
        )

    def _single_gpu(self, rows: IntArray, batch: IntArray) -> _Alone:
        """Single GPUs of some rows [n], each at a batch."""
        if (rows == rows[:1]).all():  # of one setting, which is seen without comparing rows
            batches, where = distinct(batch)
            singles = np.full_like(batches, rows[0] if rows.size else 0)
        else:
            sample, where = distinct_rows(rows, batch)
            singles, batches = rows[sample], batch[sample]
        blocks = [slice(start, start + BLOCK) for start in range(0, batches.size, BLOCK)]
        steps = [self.loop.step(singles[block], batches[block]) for block in blocks]
        tpot = np.concatenate([step.tpot for step in steps]) if steps else np.empty(0)
        decoding = np.concatenate([step.decoding for step in steps]) if steps else np.empty(0)
        return _Alone(tpot[where], (decoding / tpot)[where])


@dataclass(frozen=True)
class _Alone:
    """One GPU of the kind at the batch of every shape, whether or not the model fits it: TPOT [s] and output tokens/s."""

    tpot: FloatArray
    throughput: FloatArray

    def at(self, rows: slice) -> _Alone:
        """The same for some of the shapes."""
        return _Alone(self.tpot[rows], self.throughput[rows])

"""Layouts of one deployment on one pool, evaluated together: memory, batch, times, and a reason for each that falls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.batches import as_columns, efficient_batch, largest_batch, select, with_batch
from planner.candidates.degrees import Layout
from planner.candidates.settings import PoolSetting
from planner.cost.evaluation import evaluate
from planner.cost.memory import MemoryTable, memory
from planner.cost.memory_detail import graph_findings
from planner.cost.memory_slots import state_slots
from planner.cost.setting import FloatArray, IntArray, ShapeArrays, TimesTable
from planner.diagnostics import errors
from planner.plan.shape import MemoryFigures, Rejection, Shape, TailFigures, TimeFigures

GIB = 2.0**30
TIME_COLUMNS = tuple(name for name in TimeFigures.__dataclass_fields__)


@dataclass(frozen=True)
class Evaluated:
    """Layouts with their shapes as columns, and their memory at one sequence on every data-parallel rank."""

    layouts: Sequence[Layout]
    shapes: ShapeArrays
    memory: MemoryTable


def evaluate_layouts(
    context: PoolSetting, grid: Sequence[Layout], price_per_gpu: float | None, every_batch: bool = False
) -> tuple[list[Shape], list[Rejection]]:
    """Evaluate layouts at their best batch; those that break memory or a target become rejections.

    `every_batch` adds the smaller powers of two of each shape's batch: for the latency objective a smaller batch is another shape.
    """
    if not grid:
        return [], []
    table = layout_table(context, grid)
    return evaluate_table(context, table, most_sequences(context, table), price_per_gpu, every_batch)


def most_sequences(context: PoolSetting, table: Evaluated) -> IntArray:
    """Most sequences of one replica of each layout [n] that memory, the engine and the load allow; below 1 where memory holds none."""
    most = np.minimum(table.memory.max_sequences, context.sequences_per_rank * table.shapes.data_parallel)
    return most if context.concurrency is None else np.minimum(most, context.concurrency)


def evaluate_table(
    context: PoolSetting, table: Evaluated, most: IntArray, price_per_gpu: float | None, every_batch: bool
) -> tuple[list[Shape], list[Rejection]]:
    """Evaluate layouts whose memory is known, each at its best batch up to `most` [n]."""
    grid = table.layouts
    refused = [_memory_rejection(context, table, int(row)) for row in np.flatnonzero(table.memory.max_sequences < 1)]
    longest = _longest_context(context)
    if longest is not None:
        # Engines refuse to start when the cache cannot hold one context of the length they are started for.
        whole = Evaluated(grid, table.shapes, memory(longest.setting, table.shapes, table.memory.partitions))
        short = (whole.memory.max_sequences < 1) & (most >= 1)
        refused += [_memory_rejection(longest, whole, int(row)) for row in np.flatnonzero(short)]
        most = np.where(short, np.int64(0), most)
    for item in errors(graph_findings(context.setting)):
        refused += [
            rejection(context, grid[int(row)], item.code, f"{item.message}: {item.hint}", None) for row in np.flatnonzero(most >= 1)
        ]
        most = np.zeros_like(most)
    starved = [row for row in np.flatnonzero(most >= 1) if _lacks_slots(context, table, int(row))]
    refused += [_slots_rejection(context, table, int(row)) for row in starved]
    most = np.where(np.isin(np.arange(most.size), starved), np.int64(0), most)

    def times_of(shapes: ShapeArrays) -> TimesTable:
        return evaluate(context.setting, shapes)

    def latency_of(shapes: ShapeArrays) -> TimesTable:
        return evaluate(context.setting, shapes, against_one=False)

    fitting = np.flatnonzero(most >= 1)
    if not fitting.size:
        return [], refused
    shapes = select(table.shapes, fitting)
    batch = largest_batch(latency_of, shapes, most[fitting], context.targets)
    late = np.flatnonzero(batch < 1)
    if late.size:
        alone = times_of(with_batch(select(shapes, late), np.ones(late.size, dtype=np.int64)))
        refused.extend(_late_rejection(context, grid[int(fitting[row])], alone, index) for index, row in enumerate(late))
    quick = np.flatnonzero(batch >= 1)
    if not quick.size:
        return [], refused
    shapes, batch, rows = select(shapes, quick), batch[quick], fitting[quick]
    efficient = efficient_batch(times_of, shapes, batch, context.targets)
    wasteful = np.flatnonzero(efficient < 1)
    if wasteful.size:
        times = times_of(with_batch(select(shapes, wasteful), batch[wasteful]))
        refused.extend(
            _inefficient_rejection(context, grid[int(rows[row])], times, index, int(batch[row])) for index, row in enumerate(wasteful)
        )
    kept = np.flatnonzero(efficient >= 1)
    if not kept.size:
        return [], refused
    rows, batch = rows[kept], efficient[kept]
    idle = batch < table.shapes.data_parallel[rows]
    refused.extend(_idle_rejection(context, grid[int(row)], int(size)) for row, size in zip(rows[idle], batch[idle], strict=True))
    rows, batch = rows[~idle], batch[~idle]
    if not rows.size:
        return [], refused
    if every_batch:
        rows, batch = smaller_batches(rows, batch)
        busy = batch >= table.shapes.data_parallel[rows]
        rows, batch = rows[busy], batch[busy]
    shapes = with_batch(select(table.shapes, rows), batch)
    held = memory(context.setting, shapes, [table.memory.partitions[int(row)] for row in rows])
    return _shapes(context, [grid[int(row)] for row in rows], shapes, held, times_of(shapes), price_per_gpu), refused


def _longest_context(context: PoolSetting) -> PoolSetting | None:
    """The same question for one context of max_model_len tokens; None where a request of the workload is as long."""
    setting = context.setting
    if setting.max_model_len <= setting.prompt_tokens + setting.output_tokens:
        return None
    return replace(context, setting=replace(setting, prompt_tokens=float(setting.max_model_len), output_tokens=0.0))


def smaller_batches(rows: IntArray, batch: IntArray) -> tuple[IntArray, IntArray]:
    """Each row with its own batch and every smaller power of two."""
    pairs = {(int(row), int(size)) for row, size in zip(rows, batch, strict=True)}
    pairs |= {(int(row), 1 << step) for row, size in zip(rows, batch, strict=True) for step in range(int(size).bit_length())}
    columns = as_columns(sorted((row, size) for row, size in pairs))
    return columns[0], columns[1]


def layout_table(context: PoolSetting, grid: Sequence[Layout], partitions: Sequence[tuple[int, ...]] | None = None) -> Evaluated:
    """Columns of the layouts, and their memory at a batch of one sequence on every data-parallel rank; balanced without `partitions`."""
    columns = as_columns(
        [
            (
                layout.degrees.tensor_parallel,
                layout.degrees.pipeline_parallel,
                layout.degrees.expert_parallel,
                layout.degrees.data_parallel,
                layout.degrees.data_parallel,
                layout.tp_level,
                layout.stage_level,
                layout.stage_scopes,
                layout.replica_level,
            )
            for layout in grid
        ]
    )
    shapes = ShapeArrays(*columns)
    return Evaluated(grid, shapes, memory(context.setting, shapes, partitions))


def _shapes(
    context: PoolSetting,
    layouts: Sequence[Layout],
    shapes: ShapeArrays,
    held: MemoryTable,
    times: TimesTable,
    price_per_gpu: float | None,
) -> list[Shape]:
    """Rows of the menu: each layout with its memory and its times at its batch."""
    figures: dict[str, FloatArray] = {name: getattr(times, name) for name in TIME_COLUMNS}
    percentile = context.targets.percentile
    tpot, ttft = context.targets.judged(times)
    precision = context.setting.precision
    answer = []
    for row, layout in enumerate(layouts):
        throughput = float(times.throughput[row])
        answer.append(
            Shape(
                deployment=context.deployment,
                pool=context.pool.index,
                degrees=layout.degrees,
                batch=int(shapes.batch[row]),
                locality=context.pool.levels[layout.replica_level],
                group_level=context.pool.levels[layout.group_level],
                groups=layout.groups,
                group_size=layout.group_size,
                capacity=float(shapes.batch[row]) if context.concurrency is not None else throughput,
                price=(price_per_gpu or 0.0) * layout.degrees.gpus,
                comm_seconds=float(times.tp_comm[row] + times.pp_comm[row] + times.ep_comm[row]),
                throughput=throughput,
                memory=MemoryFigures(
                    budget=float(held.budget[row]),
                    weights=float(held.weights[row]),
                    kv=float(held.kv[row]),
                    other=float(held.other[row]),
                    other_low=float(held.other_low[row]),
                    other_high=float(held.other_high[row]),
                    free=float(held.free[row]),
                    max_sequences=int(held.max_sequences[row]),
                    stage=int(held.stage[row]),
                ),
                times=TimeFigures(**{name: float(column[row]) for name, column in figures.items()}),
                partition=held.partitions[row],
                weights_dtype=precision.weights,
                kv_dtype=precision.kv_cache,
                tail=None if percentile is None else TailFigures(percentile, float(tpot[row]), float(ttft[row])),
            )
        )
    return answer


def _memory_rejection(context: PoolSetting, table: Evaluated, row: int) -> Rejection:
    """Say by how much a layout does not fit, on which stage, and what takes the room."""
    layout, held = table.layouts[row], table.memory
    weights, other, budget = float(held.weights[row]), float(held.other[row]), float(held.budget[row])
    kv = float(held.kv_per_sequence[row])
    where = f" on stage {int(held.stage[row])}" if layout.degrees.pipeline_parallel > 1 else ""
    if weights + other > budget:
        short = weights + other - budget
        words = (
            f"short by {short / GIB:.1f} GiB a GPU{where}: weights {weights / GIB:.1f} + other {other / GIB:.1f} of {budget / GIB:.1f} GiB"
        )
        return rejection(context, layout, "WEIGHTS_DO_NOT_FIT" if weights > budget else "ACTIVATION", words, short / budget)
    short = weights + other + kv - budget
    tokens = context.setting.prompt_tokens + context.setting.output_tokens
    words = f"short by {short / GIB:.1f} GiB a GPU{where}: one sequence of {tokens:,.0f} tokens needs {kv / GIB:.1f} GiB of KV cache, "
    words += f"{max(budget - weights - other, 0.0) / GIB:.1f} of {budget / GIB:.1f} GiB are left beside the weights"
    return rejection(context, layout, "KV_DOES_NOT_FIT", words, short / budget)


def _slots(context: PoolSetting, table: Evaluated, row: int) -> int | None:
    """Slots for recurrent states beside the weights of a layout; None for a model without them."""
    held, degrees = table.memory, table.layouts[row].degrees
    room = float(held.budget[row] - held.weights[row] - held.other[row])
    return state_slots(context.setting, context.setting.engine_facts, degrees.tensor_parallel, degrees.pipeline_parallel, room)


def _lacks_slots(context: PoolSetting, table: Evaluated, row: int) -> bool:
    """Whether the engine is asked to run more sequences than it has state slots for, which keeps it from starting."""
    asked = context.setting.max_num_seqs
    slots = _slots(context, table, row) if asked else None
    return slots is not None and slots < asked


def _slots_rejection(context: PoolSetting, table: Evaluated, row: int) -> Rejection:
    slots, asked = _slots(context, table, row) or 0, context.setting.max_num_seqs
    words = f"{asked} sequences are asked for (max_num_seqs), the pool has state slots for {slots}: the engine refuses to start"
    return rejection(context, table.layouts[row], "STATE_SLOTS", words, asked / max(slots, 1) - 1.0)


def _late_rejection(context: PoolSetting, layout: Layout, times: TimesTable, index: int) -> Rejection:
    """Say which latency target a single sequence misses, and by how much."""
    targets = context.targets
    judged = targets.judged(times)
    tpot, ttft = float(judged[0][index]), float(judged[1][index])
    if tpot > targets.tpot:
        words = f"{targets.words}time per token {tpot * 1e3:.1f} ms with one sequence, asked {targets.tpot * 1e3:.1f} ms"
        return rejection(context, layout, "TPOT_MISSED", words, tpot / targets.tpot - 1.0)
    words = f"{targets.words}time to first token {ttft:.2f} s with one sequence, asked {targets.ttft:.2f} s"
    return rejection(context, layout, "TTFT_MISSED", words, ttft / targets.ttft - 1.0)


def _inefficient_rejection(context: PoolSetting, layout: Layout, times: TimesTable, index: int, batch: int) -> Rejection:
    """Say which efficiency a layout reaches."""
    reached, asked = float(times.efficiency[index]), context.targets.min_efficiency
    words = f"efficiency {reached:.0%} at batch {batch}, asked {asked:.0%}"
    return rejection(context, layout, "EFFICIENCY_TOO_LOW", words, asked / max(reached, 1e-9) - 1.0)


def _idle_rejection(context: PoolSetting, layout: Layout, batch: int) -> Rejection:
    """Say that some data-parallel ranks would have no sequence to work on."""
    ranks = layout.degrees.data_parallel
    words = f"batch {batch} leaves some of {ranks} data-parallel ranks idle"
    return rejection(context, layout, "BATCH_BELOW_DP", words, ranks / batch - 1.0)


def rejection(context: PoolSetting, layout: Layout, code: str, message: str, shortfall: float | None) -> Rejection:
    """A layout that leaves the menu; a shortfall that is no finite number has no size."""
    size = shortfall if shortfall is None or math.isfinite(shortfall) else None
    locality = context.pool.levels[layout.replica_level]
    return Rejection(context.deployment, context.pool.index, layout.degrees, locality, code, message, size)

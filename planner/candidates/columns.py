"""Layouts of one deployment on one pool, evaluated together: memory, batch, times, and a reason for each that falls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from planner.candidates.asking import Asked, Search, Searched, answered
from planner.candidates.batches import as_columns, efficient_batches, largest_batches
from planner.candidates.degrees import Layout
from planner.candidates.refusals import (
    idle_rejection,
    inefficient_rejection,
    late_rejection,
    memory_rejection,
    rejection,
    slots_rejection,
    starved_rows,
)
from planner.candidates.settings import PoolSetting
from planner.cost.distinct import distinct_rows
from planner.cost.memory import MemoryTable, memory
from planner.cost.memory_detail import graph_findings
from planner.cost.pipeline_split import remember_splits
from planner.cost.setting import IntArray, Setting, ShapeArrays
from planner.diagnostics import errors
from planner.plan.shape import MemoryFigures, Rejection, Shape, TailFigures, TimeFigures

TIME_COLUMNS = tuple(TimeFigures.__dataclass_fields__)
MEMORY_COLUMNS = tuple(MemoryFigures.__dataclass_fields__)


@dataclass(frozen=True)
class Evaluated:
    """Layouts with their shapes as columns, and their memory at one sequence on every data-parallel rank."""

    layouts: Sequence[Layout]
    shapes: ShapeArrays
    memory: MemoryTable


class Question(NamedTuple):
    """Layouts of a deployment on a pool to be evaluated at their best batch, `price_per_gpu` [$/h].

    `every_batch` adds the smaller powers of two of each shape's batch: for the latency objective a smaller batch is another shape.
    """

    context: PoolSetting
    grid: Sequence[Layout]
    price_per_gpu: float | None
    every_batch: bool = False


class Query(NamedTuple):
    """A question whose layouts' memory is known, each to be evaluated at its best batch up to `most` [n]."""

    context: PoolSetting
    table: Evaluated
    most: IntArray
    price_per_gpu: float | None
    every_batch: bool = False


Found = tuple[list[Shape], list[Rejection]]


def evaluate_layouts(questions: Sequence[Question]) -> list[Found]:
    """Evaluate the layouts of many questions; those that break memory or a target become rejections. No question is answered otherwise than it would be alone."""
    found: list[Found] = [([], []) for _ in questions]
    asked = [number for number, question in enumerate(questions) if question.grid]
    tables = layout_tables([questions[number][:2] for number in asked])
    queries = []
    for number, table in zip(asked, tables, strict=True):
        context, _, price, every_batch = questions[number]
        queries.append(Query(context, table, most_sequences(context, table), price, every_batch))
    for number, answer in zip(asked, evaluate_tables(queries), strict=True):
        found[number] = answer
    return found


def most_sequences(context: PoolSetting, table: Evaluated) -> IntArray:
    """Most sequences of one replica of each layout [n] that memory, the engine and the load allow; below 1 where memory holds none."""
    most = np.minimum(table.memory.max_sequences, context.sequences_per_rank * table.shapes.data_parallel)
    return most if context.concurrency is None else np.minimum(most, context.concurrency)


def evaluate_tables(queries: Sequence[Query]) -> list[Found]:
    """Evaluate layouts whose memory is known."""
    found: list[Found] = []
    searches: dict[int, Searched[Found]] = {}
    for number, query in enumerate(queries):
        most, refused = _startable(query.context, query.table, query.most)
        found.append(([], refused))
        if (most >= 1).any():
            searches[number] = Searched(query.context.setting, query.table.shapes, partial(_evaluated, query, most))
    for number, (shapes, refused) in zip(searches, answered([*searches.values()]), strict=True):
        found[number] = (shapes, [*found[number][1], *refused])
    return found


def evaluate_table(
    context: PoolSetting, table: Evaluated, most: IntArray, price_per_gpu: float | None, every_batch: bool
) -> tuple[list[Shape], list[Rejection]]:
    """Evaluate layouts whose memory is known, each at its best batch up to `most` [n]."""
    return evaluate_tables([Query(context, table, most, price_per_gpu, every_batch)])[0]


def _evaluated(query: Query, most: IntArray, alike: IntArray) -> Search[Found]:
    """Evaluate the layouts that hold some of `most` sequences [n]; those with the same number in `alike` [n] have the same times."""
    context, table = query.context, query.table
    fitting = np.flatnonzero(most >= 1)
    rows, batch, refused = yield from _within_targets(context, table.layouts, alike, fitting, most[fitting])
    idle = batch < table.shapes.data_parallel[rows]
    refused += [
        idle_rejection(context, table.layouts[row], size) for row, size in zip(rows[idle].tolist(), batch[idle].tolist(), strict=True)
    ]
    rows, batch = rows[~idle], batch[~idle]
    if query.every_batch and rows.size:
        rows, batch = smaller_batches(rows, batch)
        busy = batch >= table.shapes.data_parallel[rows]
        rows, batch = rows[busy], batch[busy]
    if not rows.size:
        return [], refused
    shapes = yield from _shapes(context, table, alike, rows, batch, query.price_per_gpu)
    return shapes, refused


def _startable(context: PoolSetting, table: Evaluated, most: IntArray) -> tuple[IntArray, list[Rejection]]:
    """Most sequences [n] of the layouts with which an engine would start, 0 for the others, and why it would not."""
    grid, held = table.layouts, table.memory
    refused = [memory_rejection(context, grid[row], held, row) for row in np.flatnonzero(held.max_sequences < 1).tolist()]
    longest = _longest_context(context)
    if longest is not None:
        # Engines refuse to start when the cache cannot hold one context of the length they are started for.
        whole = _held(longest.setting, table.shapes, held.partitions)
        short = (whole.max_sequences < 1) & (most >= 1)
        refused += [memory_rejection(longest, grid[row], whole, row) for row in np.flatnonzero(short).tolist()]
        most = np.where(short, np.int64(0), most)
    for item in errors(graph_findings(context.setting)):
        words = f"{item.message}: {item.hint}"
        refused += [rejection(context, grid[row], item.code, words, None) for row in np.flatnonzero(most >= 1).tolist()]
        most = np.zeros_like(most)
    starved = starved_rows(context, grid, held, np.flatnonzero(most >= 1))
    refused += [slots_rejection(context, grid[row], held, row) for row in starved]
    return np.where(np.isin(np.arange(most.size), starved), np.int64(0), most) if starved else most, refused


def _within_targets(
    context: PoolSetting, grid: Sequence[Layout], alike: IntArray, rows: IntArray, most: IntArray
) -> Search[tuple[IntArray, IntArray, list[Rejection]]]:
    """Rows that meet the targets, each with its largest batch up to `most` [n], and why the others do not.

    Layouts with the same times at every batch and the same room are looked at once.
    """
    targets = context.targets
    sample, where = distinct_rows(alike[rows], most)
    chosen = rows[sample]
    largest = yield from largest_batches(chosen, most[sample], targets)
    refused: list[Rejection] = []
    late = np.flatnonzero(largest < 1)
    if late.size:
        judged = targets.judged((yield Asked(chosen[late], np.ones(late.size, dtype=np.int64), against_one=False)))
        reached = dict(zip(late.tolist(), zip(*(column.tolist() for column in judged), strict=True), strict=True))
        refused += [
            late_rejection(context, grid[row], *reached[sort])
            for row, sort in zip(rows.tolist(), where.tolist(), strict=True)
            if sort in reached
        ]
    quick = np.flatnonzero(largest >= 1)
    batch = largest.copy()
    batch[quick] = yield from efficient_batches(chosen[quick], largest[quick], targets)
    wasteful = quick[batch[quick] < 1]
    if wasteful.size:
        told = yield Asked(chosen[wasteful], largest[wasteful], against_one=True)
        shares = dict(zip(wasteful.tolist(), told.efficiency.tolist(), strict=True))
        refused += [
            inefficient_rejection(context, grid[row], shares[sort], int(largest[sort]))
            for row, sort in zip(rows.tolist(), where.tolist(), strict=True)
            if sort in shares
        ]
    kept = batch[where] >= 1
    return rows[kept], batch[where][kept], refused


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


def layout_tables(asked: Sequence[tuple[PoolSetting, Sequence[Layout]]]) -> list[Evaluated]:
    """Columns of the layouts of many settings, and their memory at a batch of one sequence on every data-parallel rank, layers balanced over their stages."""
    columns = [layout_columns(grid) for _, grid in asked]
    settings = [context.setting for context, _ in asked]
    remember_splits(zip(settings, columns, strict=True))
    held: dict[Hashable, MemoryTable] = {}
    found = []
    for setting, shapes, (_, grid) in zip(settings, columns, asked, strict=True):
        key = (setting, shapes.key)
        if key not in held:
            held[key] = _held(setting, shapes, None)
        found.append(Evaluated(grid, shapes, held[key]))
    return found


def layout_table(context: PoolSetting, grid: Sequence[Layout], partitions: Sequence[tuple[int, ...]] | None = None) -> Evaluated:
    """The same for the layouts of one setting, with layers per stage as in `partitions`, or balanced."""
    shapes = layout_columns(grid)
    return Evaluated(grid, shapes, _held(context.setting, shapes, partitions))


def layout_columns(grid: Sequence[Layout]) -> ShapeArrays:
    """Layouts as columns, at a batch of one sequence on every data-parallel rank."""
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
    return ShapeArrays(*columns)


def _held(setting: Setting, shapes: ShapeArrays, partitions: Sequence[tuple[int, ...]] | None) -> MemoryTable:
    """Memory of shapes whose batch follows from their degrees; those with the same degrees and layers per stage are counted once."""
    numbers: dict[tuple[int, ...], int] = {}
    split = None if partitions is None else [numbers.setdefault(partition, len(numbers)) for partition in partitions]
    degrees = shapes.tensor_parallel, shapes.pipeline_parallel, shapes.expert_parallel, shapes.data_parallel
    sample, where = distinct_rows(*degrees, *([] if split is None else [np.array(split, dtype=np.int64)]))
    return memory(setting, shapes.at(sample), None if partitions is None else [partitions[row] for row in sample.tolist()]).at(where)


def _shapes(
    context: PoolSetting, table: Evaluated, alike: IntArray, rows: IntArray, batch: IntArray, price_per_gpu: float | None
) -> Search[list[Shape]]:
    """Rows of the menu: each layout with its memory and its times at its batch, worked out once for layouts alike."""
    sample, where = distinct_rows(alike[rows], batch)
    chosen, size = rows[sample], batch[sample]
    densest, part = _densest(table.shapes.at(chosen), size)
    # One row more: the densest shape at two thirds of its batch.
    told = yield Asked(np.append(chosen, chosen[densest]), np.append(size, part), against_one=True)
    relief = max(0.0, float(told.tpot[densest] - told.tpot[-1])) / (float(size[densest]) / part - 1.0) if part < size[densest] else None
    first = where.tolist().index(densest)
    partitions = [table.memory.partitions[row] for row in chosen.tolist()]
    held = memory(context.setting, replace(table.shapes.at(chosen), batch=size), partitions)
    figures = [TimeFigures(*row) for row in zip(*(getattr(told, name).tolist() for name in TIME_COLUMNS), strict=True)]
    memories = [MemoryFigures(*row) for row in zip(*(getattr(held, name).tolist() for name in MEMORY_COLUMNS), strict=True)]
    tails: list[TailFigures | None] = [None] * len(figures)
    if (percentile := context.targets.percentile) is not None:
        judged = zip(*(column.tolist() for column in context.targets.judged(told)), strict=True)
        tails = [TailFigures(percentile, *pair) for pair in judged]
    communication, throughput = (told.tp_comm + told.pp_comm + told.ep_comm).tolist(), told.throughput.tolist()
    precision, levels, price = context.setting.precision, context.pool.levels, price_per_gpu or 0.0
    answer = []
    for row, sort, sequences in zip(rows.tolist(), where.tolist(), batch.tolist(), strict=True):
        layout = table.layouts[row]
        answer.append(
            Shape(
                deployment=context.deployment,
                pool=context.pool.index,
                degrees=layout.degrees,
                batch=sequences,
                locality=levels[layout.replica_level],
                group_level=levels[layout.group_level],
                groups=layout.groups,
                group_size=layout.group_size,
                capacity=float(sequences) if context.concurrency is not None else throughput[sort],
                price=price * layout.degrees.gpus,
                comm_seconds=communication[sort],
                throughput=throughput[sort],
                memory=memories[sort],
                times=figures[sort],
                partition=partitions[sort],
                weights_dtype=precision.weights,
                kv_dtype=precision.kv_cache,
                tail=tails[sort],
            )
        )
    answer[first] = replace(answer[first], relief=relief)
    return answer


def _densest(shapes: ShapeArrays, batch: IntArray) -> tuple[int, int]:
    """Row of the shape that holds most sequences per GPU, of equals the one with the largest batch, and two thirds of its batch."""
    gpus = shapes.tensor_parallel * shapes.data_parallel * shapes.pipeline_parallel
    row = int(np.lexsort((-np.arange(batch.size), batch, batch / gpus))[-1])
    return row, int(max(-(-2 * batch[row] // 3), shapes.data_parallel[row]))

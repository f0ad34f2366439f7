"""Shapes from figures of the deployment's own: what a replica serves is what was measured; legality and memory are still checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.candidates.batches import Targets
from planner.candidates.columns import Evaluated, evaluate_table, layout_table, most_sequences
from planner.candidates.degrees import Layout
from planner.candidates.refusals import rejection
from planner.candidates.settings import PoolSetting
from planner.plan.shape import Rejection, Shape
from planner.problem.workload import WHOLE, Measured, measured_for


def evaluate_measured(
    context: PoolSetting, grid: Sequence[Layout], price_per_gpu: float | None, bucket: str = WHOLE
) -> tuple[list[Shape], list[Rejection]]:
    """Evaluate layouts that figures are given for.

    A rate is served at the least batch (a power of two, or the most that memory holds) at which the model's own throughput reaches it, which is where
    memory and times are told; sequences are the batch. Figures count as reached within the targets, unless the times measured with them say otherwise.
    """
    shapes: list[Shape] = []
    refused: list[Rejection] = []
    for layout in grid:
        entry = entry_of(context, layout)
        reason = None if entry is None else _refusal(context, layout, entry, bucket)
        if entry is None or reason is not None:
            refused += [reason] if reason is not None else []
            continue
        found, late = _at_figure(context, layout, entry.figure(bucket), price_per_gpu)
        shapes += found
        refused += late
    return shapes, refused


def entry_of(context: PoolSetting, layout: Layout) -> Measured | None:
    """Figures that are given for a layout; None where there are none."""
    degrees = layout.degrees
    key = (degrees.tensor_parallel, degrees.pipeline_parallel, degrees.expert_parallel, degrees.data_parallel)
    return measured_for(context.measured, context.pool.gpu.name, key)


def not_measured(context: PoolSetting, grid: Sequence[Layout]) -> list[Rejection]:
    """Layouts without figures, where figures are given: they have no place beside measured ones and leave."""
    gpu = context.pool.gpu.name
    return [
        rejection(context, layout, "NOT_MEASURED", f"no figures of {layout.degrees} on {gpu} are given under `throughput`", None)
        for layout in grid
        if entry_of(context, layout) is None
    ]


def _refusal(context: PoolSetting, layout: Layout, entry: Measured, bucket: str) -> Rejection | None:
    if not entry.figure(bucket):
        return rejection(context, layout, "MEASURED_AS_NOTHING", "its figure under `throughput` is 0", None)
    for code, word, measured, asked in (
        ("TPOT_MISSED", "time per token", entry.tpot, context.targets.tpot),
        ("TTFT_MISSED", "time to first token", entry.ttft, context.targets.ttft),
    ):
        if measured is not None and measured > asked:
            message = f"{word} {measured * 1e3:.4g} ms was measured, asked {asked * 1e3:.4g} ms"
            return rejection(context, layout, code, message, measured / asked - 1.0)
    return None


def _at_figure(context: PoolSetting, layout: Layout, figure: float, price_per_gpu: float | None) -> tuple[list[Shape], list[Rejection]]:
    """One layout at its figure, requests/s or sequences."""
    free = replace(context, targets=Targets(percentile=context.targets.percentile, jitter=context.targets.jitter))
    table = layout_table(free, [layout])
    most = int(most_sequences(replace(free, concurrency=None), table)[0])
    if context.concurrency is not None:
        sequences = min(figure, float(context.concurrency))
        if 1 <= most < sequences:
            message = f"{figure:.6g} sequences are given under `throughput`, memory and engine hold {most}"
            return [], [rejection(context, layout, "MEASURED_DOES_NOT_FIT", message, sequences / most - 1.0)]
        return _at_batch(free, table, min(most, int(sequences)), price_per_gpu)
    tokens = figure * context.setting.output_tokens
    found: list[Shape] = []
    refused: list[Rejection] = []
    for batch in dict.fromkeys([*(1 << step for step in range(max(most, 1).bit_length())), most]):
        found, refused = _at_batch(free, table, min(batch, most), price_per_gpu)
        if not found or found[0].throughput >= tokens:
            break
    return [replace(shape, throughput=tokens, capacity=tokens) for shape in found], refused


def _at_batch(context: PoolSetting, table: Evaluated, batch: int, price_per_gpu: float | None) -> tuple[list[Shape], list[Rejection]]:
    return evaluate_table(context, table, np.array([batch], dtype=np.int64), price_per_gpu, every_batch=False)

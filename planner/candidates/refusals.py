"""Why layouts leave the menu, in words: memory, state slots, targets, idle ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.candidates.degrees import Layout
from planner.candidates.settings import PoolSetting
from planner.cost.memory import MemoryTable
from planner.cost.memory_slots import state_slots
from planner.cost.setting import IntArray
from planner.plan.shape import Rejection

GIB = 2.0**30


def memory_rejection(context: PoolSetting, layout: Layout, held: MemoryTable, row: int) -> Rejection:
    """Say by how much a layout does not fit, on which stage, and what takes the room."""
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


def starved_rows(context: PoolSetting, layouts: Sequence[Layout], held: MemoryTable, rows: IntArray) -> list[int]:
    """Those of `rows` where the engine is asked to run more sequences than it has state slots for, which keeps it from starting."""
    asked = context.setting.max_num_seqs
    if not asked or all(kind.recurrent is None for kind in context.setting.architecture.layer_kinds):
        return []
    return [row for row in rows.tolist() if (slots := _slots(context, layouts[row], held, row)) is not None and slots < asked]


def _slots(context: PoolSetting, layout: Layout, held: MemoryTable, row: int) -> int | None:
    """Slots for recurrent states beside the weights of a layout; None for a model without them."""
    degrees = layout.degrees
    room = float(held.budget[row] - held.weights[row] - held.other[row])
    return state_slots(context.setting, context.setting.engine_facts, degrees.tensor_parallel, degrees.pipeline_parallel, room)


def slots_rejection(context: PoolSetting, layout: Layout, held: MemoryTable, row: int) -> Rejection:
    """Say how many sequences are asked for and how many slots there are."""
    slots, asked = _slots(context, layout, held, row) or 0, context.setting.max_num_seqs
    words = f"{asked} sequences are asked for (max_num_seqs), the pool has state slots for {slots}: the engine refuses to start"
    return rejection(context, layout, "STATE_SLOTS", words, asked / max(slots, 1) - 1.0)


def late_rejection(context: PoolSetting, layout: Layout, tpot: float, ttft: float) -> Rejection:
    """Say which latency target a single sequence misses, and by how much; both times [s] as the targets judge them."""
    targets = context.targets
    if tpot > targets.tpot:
        words = f"{targets.words}time per token {tpot * 1e3:.1f} ms with one sequence, asked {targets.tpot * 1e3:.1f} ms"
        return rejection(context, layout, "TPOT_MISSED", words, tpot / targets.tpot - 1.0)
    words = f"{targets.words}time to first token {ttft:.2f} s with one sequence, asked {targets.ttft:.2f} s"
    return rejection(context, layout, "TTFT_MISSED", words, ttft / targets.ttft - 1.0)


def inefficient_rejection(context: PoolSetting, layout: Layout, reached: float, batch: int) -> Rejection:
    """Say which efficiency a layout reaches."""
    asked = context.targets.min_efficiency
    words = f"efficiency {reached:.0%} at batch {batch}, asked {asked:.0%}"
    return rejection(context, layout, "EFFICIENCY_TOO_LOW", words, asked / max(reached, 1e-9) - 1.0)


def idle_rejection(context: PoolSetting, layout: Layout, batch: int) -> Rejection:
    """Say that some data-parallel ranks would have no sequence to work on."""
    ranks = layout.degrees.data_parallel
    words = f"batch {batch} leaves some of {ranks} data-parallel ranks idle"
    return rejection(context, layout, "BATCH_BELOW_DP", words, ranks / batch - 1.0)


def rejection(context: PoolSetting, layout: Layout, code: str, message: str, shortfall: float | None) -> Rejection:
    """A layout that leaves the menu; a shortfall that is no finite number has no size."""
    size = shortfall if shortfall is None or math.isfinite(shortfall) else None
    locality = context.pool.levels[layout.replica_level]
    formats = context.setting.precision
    return Rejection(
        context.deployment,
        context.pool.index,
        layout.degrees,
        locality,
        code,
        message,
        size,
        weights_dtype=formats.weights,
        kv_dtype=formats.kv_cache,
    )

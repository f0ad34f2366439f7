"""How the layers of a model are laid over pipeline stages, so that the tightest stage holds as many sequences as it can."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from planner.cost.layer_split import balanced_partition, engine_partition, stage_loads, unbalanced_partition
from planner.cost.memory import memory
from planner.cost.memory_weights import model_bytes
from planner.cost.setting import Setting, ShapeArrays

__all__ = ["balanced_partition", "balanced_partitions", "engine_partition", "stage_loads", "unbalanced_partition"]

# A representative width leaves this share of the budget to weights; widths beyond the widest are not tried.
WEIGHT_SHARE: Final = 0.6
WIDEST: Final = 64


def balanced_partitions(setting: Setting, stages: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """Layers per stage for several pipeline degrees: bytes of weights, KV, embedding, head and sampler in balance.

    What balances a pipeline depends on the other degrees too, so each is balanced at a representative one: the smallest power of two whose stages
    hold the weights in 60 % of their budget. `cost.memory.memory` without partitions balances every shape by itself, which takes longer.
    """
    degrees = sorted(set(stages))
    budget = setting.gpu_memory_utilization * setting.gpu.memory.value
    whole = model_bytes(setting.architecture, setting.precision)
    widths = []
    for degree in degrees:
        width = 1
        while width < WIDEST and whole / (width * degree) > WEIGHT_SHARE * budget:
            width *= 2
        widths.append(width)
    one = np.ones(len(degrees), dtype=np.int64)
    shapes = ShapeArrays(np.array(widths, dtype=np.int64), np.array(degrees, dtype=np.int64), one, one, one, 0 * one, 0 * one, one, 0 * one)
    return dict(zip(degrees, memory(setting, shapes).partitions, strict=True))

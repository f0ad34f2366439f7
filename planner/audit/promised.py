"""The levels a shape's times were promised at, as the arrays that `cost.evaluation` takes.

A plan says how near the whole replica sits (`locality`); how near a TP group and a stage sit follows from it: inside one scale-up scope
everything is at that level; beyond it TP groups still fill one scope, and a stage spans one scope or several equal parts. A stage
of several data-parallel ranks may be cut in more than one way, so all cuts that the placement respects are listed, tightest first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.audit.families import Family
from planner.cost.setting import ShapeArrays


def promised_shapes(family: Family, placed_stage_scopes: int) -> ShapeArrays:
    """Shape of `family` at every reading of its promise that its placement keeps [readings >= 1].

    `placed_stage_scopes` is the most scale-up scopes any stage of these replicas really touches.
    """
    degrees, levels = family.degrees, family.pool.levels
    replica_level = levels.index(family.shape.locality)
    scale_up = levels.index(family.pool.scale_up_level)
    inside = min(replica_level, scale_up)
    tp_level = inside if degrees.tensor_parallel > 1 else 0
    cuts = [1] if replica_level <= scale_up else [cut for cut in range(1, degrees.data_parallel + 1) if degrees.data_parallel % cut == 0]
    kept = [cut for cut in cuts if cut >= placed_stage_scopes] or cuts[-1:]
    stage_levels = [replica_level if cut > 1 else (inside if degrees.stage_gpus > 1 else 0) for cut in kept]

    def same(value: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.full(len(kept), value, dtype=np.int64)

    return ShapeArrays(
        tensor_parallel=same(degrees.tensor_parallel),
        pipeline_parallel=same(degrees.pipeline_parallel),
        expert_parallel=same(degrees.expert_parallel),
        data_parallel=same(degrees.data_parallel),
        batch=same(family.shape.batch),
        tp_level=same(tp_level),
        stage_level=np.array(stage_levels, dtype=np.int64),
        stage_scopes=np.array(kept, dtype=np.int64),
        replica_level=same(replica_level),
    )


def joined(tables: Sequence[ShapeArrays]) -> ShapeArrays:
    """Rows of several tables under one another."""
    return ShapeArrays(**{name: np.concatenate([getattr(table, name) for table in tables]) for name in ShapeArrays.__dataclass_fields__})

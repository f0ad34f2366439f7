"""Shapes that keep GPUs free, one for every shape of a deployment that asks for spares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from planner.solve.buckets import NOT_SERVED
from planner.solve.instance import Instance, ShapeColumns

SERVES_NOTHING = {"capacity": 0, "share": 0, "comm": 0, "tpot": 0, "ttft": 0, "token_time": 0, "use": NOT_SERVED, "bucket_tpot": 0}


def with_spares(instance: Instance) -> Instance:
    """Add to a question the shapes of the spares that its deployments ask for; the same question where they ask for none."""
    shapes = instance.shapes
    wanted = np.array([instance.rules_of(number).spares for number in range(instance.deployments)], dtype=np.int64)
    rows = np.flatnonzero(wanted[shapes.deployment] > 0)
    if not len(rows):
        return instance
    columns: dict[str, Any] = {}
    for name in ShapeColumns.__dataclass_fields__:
        column = getattr(shapes, name)
        if column is not None:
            added = np.full_like(column[rows], SERVES_NOTHING[name]) if name in SERVES_NOTHING else column[rows]
            columns[name] = np.concatenate([column, added])
    columns["spare_of"] = np.concatenate([np.full(len(shapes), -1, dtype=np.int64), instance.source[rows]])
    source = np.concatenate([instance.source, int(instance.source.max()) + 1 + np.arange(len(rows), dtype=np.int64)])
    return replace(instance, shapes=ShapeColumns(**columns), source=source)

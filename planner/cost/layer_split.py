"""Cutting a row of layers into contiguous stages: the cut that balances a load, and the one an engine makes by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.catalog.engines import Engine
from planner.cost.layer_balance import least_limits
from planner.cost.layer_ends import nearest_ends
from planner.diagnostics import Diagnostic, Severity

FloatArray = NDArray[np.float64]

# Above this ratio of the fullest stage to the best possible one an override is worth a line in the launch file.
UNBALANCED: Final = 1.02


def balanced_partition(layer_loads: Sequence[float], stages: int, first: float = 0.0, last: float = 0.0) -> tuple[int, ...]:
    """Cut layers into contiguous stages so that the fullest stage is as empty as possible; no stage is left without a layer.

    Among the splits with that smallest maximum the one whose boundaries lie nearest to equal shares is returned.

    Parameters
    ----------
    layer_loads
        Load of every layer in order, e.g. bytes on one rank [B].
    stages
        Number of pipeline stages p, at most the number of layers.
    first, last
        Load that the first and the last stage carry besides (embedding; head and sampler) [B]; may be negative.

    Raises
    ------
    ValueError
        If there are more stages than layers.
    """
    return balanced_rows(np.array([layer_loads], dtype=np.float64), [stages], np.array([first]), np.array([last]))[0]


def balanced_rows(layer_loads: FloatArray, stages: Sequence[int], first: FloatArray, last: FloatArray) -> list[tuple[int, ...]]:
    """Cut many rows of layers at once, each like `balanced_partition` does.

    Parameters
    ----------
    layer_loads
        Load of every layer, shape [n, layers].
    stages
        Number of pipeline stages of every row.
    first, last
        What the first and the last stage of every row carry besides, shape [n].

    Raises
    ------
    ValueError
        If a row has more stages than layers.
    """
    layers = layer_loads.shape[1]
    for count in stages:
        if not 1 <= count <= layers:
            raise ValueError(f"{layers} layers cannot be cut into {count} stages")
    loads = layer_loads.copy()
    loads[:, 0] += first
    loads[:, -1] += last
    loads = np.maximum(loads, 0.0)
    prefix = np.concatenate((np.zeros((len(loads), 1)), np.cumsum(loads, axis=1)), axis=1)
    counts = np.array(stages, dtype=np.int64)
    limits = least_limits(prefix, counts, loads.max(axis=1))
    lengths = np.diff(nearest_ends(prefix, counts, limits), axis=1, prepend=0).tolist()
    return [tuple(row[:count]) for row, count in zip(lengths, stages, strict=True)]


def engine_partition(engine: Engine, layers: int, stages: int) -> tuple[int, ...]:
    """Number of layers per stage that this engine version chooses when nobody overrides it.

    `last` gives the remainder to the last stage; `middle` one more layer to stages counted back from the last but one;
    `first` and `end` one more layer to the first or to the last stages.
    """
    if not 1 <= stages <= layers:
        raise ValueError(f"{layers} layers cannot be cut into {stages} stages")
    counts = [layers // stages] * stages
    rest = layers % stages
    if engine.pipeline_split == "last":
        counts[-1] += rest
    elif engine.pipeline_split == "middle":
        for back in range(2, rest + 2):
            counts[-back] += 1
    else:
        for index in range(rest):
            counts[index if engine.pipeline_split == "first" else -1 - index] += 1
    return tuple(counts)


def stage_loads(layer_loads: Sequence[float], partition: Sequence[int], first: float = 0.0, last: float = 0.0) -> tuple[float, ...]:
    """Load of every stage of a partition, the ends included [B]."""
    prefix = [0.0, *accumulate(layer_loads)]
    ends = list(accumulate(partition))
    loads = [prefix[right] - prefix[left] for left, right in zip([0, *ends[:-1]], ends, strict=True)]
    loads[0] += first
    loads[-1] += last
    return tuple(loads)


def unbalanced_partition(
    engine: Engine, layer_loads: Sequence[float], stages: int, first: float = 0.0, last: float = 0.0
) -> Diagnostic | None:
    """Warn when the engine's own split fills one stage clearly more than need be, with the override that mends it.

    Returns
    -------
    A PP_UNBALANCED warning, or None when the engine's split is within 2 % of the best.
    """
    default = engine_partition(engine, len(layer_loads), stages)
    best = balanced_partition(layer_loads, stages, first, last)
    fullest, least = max(stage_loads(layer_loads, default, first, last)), max(stage_loads(layer_loads, best, first, last))
    if fullest <= UNBALANCED * least:
        return None
    gib = 2.0**30
    return Diagnostic(
        "PP_UNBALANCED",
        f"{engine.title} {engine.version} cuts {len(layer_loads)} layers into {_listed(default)}: the fullest stage holds {fullest / gib:.1f} GiB "
        f"where {_listed(best)} needs {least / gib:.1f}",
        f"set {engine.pipeline_override}={','.join(map(str, best))}",
        Severity.WARNING,
    )


def _listed(partition: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, partition)) + "]"

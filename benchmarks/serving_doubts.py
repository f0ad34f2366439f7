"""Which published rows say something about a model of step times, and which do not: every rule is about the data alone, never about a prediction.

`marked(rows)` gives back all rows, each left out with its reason or kept.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
from serving_rows import GPUS, MODELS, Row, degrees_of

from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.compute import multiplied_parameters, peak_flops


def marked(rows: list[Row]) -> list[Row]:
    """Apply every rule in turn."""
    return _mark_sparse(_mark_repeated(_mark_unsettled(_mark_cached(rows))))


def _mark_cached(rows: list[Row]) -> list[Row]:
    """Leave out series whose prompts cannot have been computed: the rate of requests would take more than 70 % of the peak FLOP/s for prompts alone."""
    impossible: set[tuple[str, ...]] = set()
    for row in rows:
        if row.left_out or not np.isfinite(row.ttft) or row.model not in MODELS:
            continue
        architecture = model(MODELS[row.model])
        rate = row.load / (row.ttft + row.output * row.tpot)
        flops = 2.0 * multiplied_parameters(architecture) * row.prompt * rate
        gpus = row.tensor_parallel * row.data_parallel * row.pipeline_parallel
        if flops > 0.7 * gpus * peak_flops(gpu(GPUS[row.gpu]), {"bf16": "bf16", "fp8": "fp8"}.get(row.dtype, "nvfp4")):
            impossible.add((*row.series, row.version))
    reason = "prompts answered from a prefix cache: more prefill than the GPUs can compute"
    return [replace(row, left_out=row.left_out or (reason if (*row.series, row.version) in impossible else "")) for row in rows]


def _mark_unsettled(rows: list[Row]) -> list[Row]:
    """Leave out what the columns cannot explain: overload, two results for one point, and step times that jump up and down with the load."""
    points: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    lines: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if not row.left_out:
            point = (*row.series, row.version, *degrees_of(row), row.prompt, row.output)
            points[*point, row.load].append(row)
            lines[point].append(row)
    twice: set[tuple[object, ...]] = set()
    odd: set[int] = set()
    for point, same in points.items():
        steps = [row.tpot for row in same]
        if max(steps) <= 1.3 * min(steps):
            continue
        most = max(same, key=lambda row: row.times_listed)
        apart = [row for row in same if not most.tpot / 1.15 < row.tpot < most.tpot * 1.15]
        if sum(row.times_listed for row in apart) < most.times_listed:
            odd |= {id(row) for row in apart}
        else:
            twice.add(point[:5])
    erratic: set[tuple[object, ...]] = set()
    for point, line in lines.items():
        steps = [row.tpot for row in sorted(line, key=lambda row: row.load)]
        if sum(later < 0.8 * sooner for sooner, later in itertools.pairwise(steps)) >= 2:
            erratic.add(point[:5])
    marked = []
    for row in rows:
        series = (*row.series, row.version)
        reason = ""
        if row.ttft > 2.0 * row.output * row.tpot:
            reason = "overloaded: requests wait for a slot longer than they run, and how many run is not recorded"
        elif id(row) in odd:
            reason = "the same operating point is listed more often with another result"
        elif series in twice:
            reason = "two results more than 30 % apart for one operating point: a setting that the columns do not record"
        elif series in erratic:
            reason = "step times jump down by more than 20 % more than once as the load grows"
        marked.append(replace(row, left_out=row.left_out or reason))
    return marked


def _mark_repeated(rows: list[Row]) -> list[Row]:
    """Leave out layouts that repeat the figures of one with half the GPUs: at ten or more shared points the medians agree within 2 %."""
    layouts: dict[tuple[object, ...], dict[tuple[float, ...], float]] = defaultdict(dict)
    for row in rows:
        if not row.left_out:
            layouts[*row.series, *degrees_of(row)][row.prompt, row.output, row.load] = row.tpot
    repeated: set[tuple[object, ...]] = set()
    for larger, points in layouts.items():
        for smaller, others in layouts.items():
            shared = points.keys() & others.keys()
            # Only layouts that differ in more than t: plain tensor parallelism may really bring nothing.
            doubled = larger[:4] == smaller[:4] and larger[4] == 2 * smaller[4] and larger[5:] != smaller[5:]
            if doubled and len(shared) >= 10 and abs(float(np.median([points[at] / others[at] for at in shared])) - 1.0) < 0.02:
                repeated.add(larger)
    reason = "repeats the figures of a layout with half the GPUs"
    return [replace(row, left_out=row.left_out or (reason if (*row.series, *degrees_of(row)) in repeated else "")) for row in rows]


def _mark_sparse(rows: list[Row]) -> list[Row]:
    """Leave out versions of a series of which fewer than eight rows are left: too few to tell what was varied."""
    counts = Counter((*row.series, row.version) for row in rows if not row.left_out)
    reason = "fewer than eight rows of this series and version"
    return [replace(row, left_out=row.left_out or (reason if counts[*row.series, row.version] < 8 else "")) for row in rows]

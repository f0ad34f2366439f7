"""Time, speed-up, efficiency and overhead against the tensor-parallel degree, with the degree that is fastest and those that pay.

Two forms. `notes` is example 4 of the alpha-beta calculator notes, W / (N BW) + alpha c L 2 log2 N: weights and the latency of a tree, whatever the batch, with one
fabric for any N. `full` is a whole step of the profile at a batch, where a degree beyond the domain crosses the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.calculators.layouts import Evaluated, evaluate_rows
from planner.calculators.question import Case, Question
from planner.cost import paper
from planner.cost.hockney import active_bytes, link_constants
from planner.plan.shape import Degrees

DEGREES: Final = (1, 2, 4, 8, 16, 32, 64)
THRESHOLDS: Final = (0.8, 0.7, 0.5)
FORMS: Final = ("notes", "full")


@dataclass(frozen=True)
class Point:
    """One degree: the step [s] with its compute and communication, and what it gains over one GPU."""

    degrees: Degrees
    tpot: float
    compute: float
    communication: float
    speedup: float
    efficiency: float
    overhead: float
    legal: bool
    fits: bool
    crosses: bool
    algorithm: str


@dataclass(frozen=True)
class Curve:
    """Points of one model on one kind of hardware at one batch.

    `time_optimal` is the degree asked about with the least time, `time_optimal_real` the optimum of the formula as a real number (form `notes` only).
    `cost_optimal` maps an efficiency threshold to the largest degree that stays at or above it. `weight_bytes` is the W of the formula [B].
    """

    case: Case
    batch: int
    form: str
    weight_bytes: float
    points: tuple[Point, ...]
    time_optimal: int
    time_optimal_real: float | None
    cost_optimal: tuple[tuple[float, int | None], ...]


def scaling(question: Question, form: str | None, thresholds: tuple[float, ...]) -> tuple[Curve, ...]:
    """Scaling curves of every case and batch; `form` None = `notes` for the textbook profile, `full` otherwise."""
    curves: list[Curve] = []
    for case in question.cases:
        chosen = form if form is not None else "notes" if case.setting.profile == "hockney" else "full"
        # The notes' form does not depend on the batch.
        batches = question.batches if chosen == "full" else question.batches[:1]
        curves += [_curve(case, question.degrees(DEGREES), batch, chosen, thresholds) for batch in batches]
    return tuple(curves)


def paper_weights(case: Case) -> float:
    """W of the paper formulas [B]: the count given, else all weights of the model (of a mixture of experts those of the active ones)."""
    given = case.counts.weight_bytes
    return given if given is not None else sum(active_bytes(case.setting))


def _curve(case: Case, degrees: tuple[Degrees, ...], batch: int, form: str, thresholds: tuple[float, ...]) -> Curve:
    table = evaluate_rows(case, [(item, batch) for item in degrees])
    points = tuple(_notes_points(table)) if form == "notes" else tuple(_full_points(table))
    fastest = min(points, key=lambda point: (point.tpot, point.degrees.tensor_parallel))
    chosen = []
    for threshold in thresholds:
        kept = [point.degrees.tensor_parallel for point in points if point.efficiency >= threshold]
        chosen.append((threshold, max(kept) if kept else None))
    return Curve(
        case,
        batch,
        form,
        paper_weights(case),
        points,
        fastest.degrees.tensor_parallel,
        _real_optimum(case) if form == "notes" else None,
        tuple(chosen),
    )


def _alpha(case: Case) -> float:
    return link_constants(case.setting.paths[1])[0] if len(case.setting.paths) > 1 else 0.0


def _real_optimum(case: Case) -> float:
    return paper.time_optimal_ranks(
        paper_weights(case), case.setting.gpu.memory_bandwidth.value, _alpha(case), case.setting.architecture.layers
    )


def _notes_points(table: Evaluated) -> list[Point]:
    case = table.case
    weights, read = paper_weights(case), case.setting.gpu.memory_bandwidth.value
    alpha, layers = _alpha(case), case.setting.architecture.layers
    points = []
    for row, (degrees, _) in enumerate(table.rows):
        ranks = float(degrees.tensor_parallel)
        total = float(paper.step_time(ranks, weights, read, alpha, layers))
        compute = paper.weight_read_time(weights, ranks, read)
        exchange = max(total - compute, 0.0)
        gain = float(paper.speedup(ranks, weights, read, alpha, layers))
        share = float(paper.efficiency(ranks, weights, read, alpha, layers))
        points.append(_point(table, row, total, (compute, exchange), gain, share, "tree" if ranks > 1 else "none"))
    return points


def _full_points(table: Evaluated) -> list[Point]:
    times = table.times
    gpus = np.array([degrees.gpus for degrees, _ in table.rows], dtype=np.float64)
    speedups = times.latency_efficiency * gpus
    points = []
    for row in range(len(table.rows)):
        exchange = float(times.tp_comm[row] + times.pp_comm[row] + times.ep_comm[row])
        tpot = float(times.tpot[row])
        parts = (tpot - exchange, exchange)
        points.append(_point(table, row, tpot, parts, float(speedups[row]), float(times.efficiency[row]), str(times.algorithm[row])))
    return points


def _point(table: Evaluated, row: int, tpot: float, parts: tuple[float, float], speedup: float, efficiency: float, algorithm: str) -> Point:
    degrees = table.rows[row][0]
    return Point(
        degrees,
        tpot,
        parts[0],
        parts[1],
        speedup,
        efficiency,
        parts[1] / parts[0],
        table.legal(row),
        bool(table.memory.free[row] >= 0.0),
        table.case.hardware.crosses(degrees),
        algorithm,
    )

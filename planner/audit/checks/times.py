"""Times are what the cost model says of the shape where it is placed, and they meet what the deployment asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from planner.audit.case import Case
from planner.audit.columns import COLUMN, FloatArray, alike
from planner.audit.families import Family, setting_of
from planner.audit.findings import finding
from planner.audit.measured import measured_of
from planner.audit.promised import joined, promised_shapes
from planner.audit.unfolded import unfolded
from planner.catalog.step_times import step_constants
from planner.cost.evaluation import evaluate_all
from planner.cost.setting import Precision, TimesTable
from planner.cost.tails import tails
from planner.diagnostics import Diagnostic
from planner.problem.workload import Measured

TOLERANCE = 1e-6
# Targets are met when they are met to the precision the times are compared with.
MARGIN = 1 + TOLERANCE
FIGURES = {
    "tpot_s": "tpot",
    "ttft_s": "ttft",
    "compute_s": "compute",
    "tp_comm_s": "tp_comm",
    "pp_comm_s": "pp_comm",
    "ep_comm_s": "ep_comm",
    "fixed_s": "fixed",
    "prefill_compute_s": "prefill_compute",
    "prefill_comm_s": "prefill_comm",
    "queueing_s": "queueing",
    "overhead": "overhead",
    "efficiency": "efficiency",
    "latency_efficiency": "latency_efficiency",
    "bubble": "bubble",
}
NAMES = (*FIGURES, "throughput_tokens_s")
CLAIMED = np.array([COLUMN[f"times.{name}"] for name in FIGURES] + [COLUMN["throughput_tokens_s"]])


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every claimed figure that differs, and for every target missed."""
    case = unfolded(case)
    together: dict[tuple[str, int, Precision], list[Family]] = {}
    for family in case.families:
        if family.precision is None:
            asked = f"{family.shape.weights_dtype} weights with {family.shape.kv_dtype} KV cache"
            for index in family.rows:
                message = f"{family.title}: {asked} is not what may run here"
                yield finding("PRECISION_NOT_ALLOWED", case.row_place(index), message, "use a precision asked for")
        elif family.shape.locality in family.pool.levels:
            together.setdefault((family.question.name, family.pool.index, family.precision), []).append(family)
    promised = [
        [promised_shapes(family, int(case.placed.stage_scopes[family.rows].max())) for family in families] for families in together.values()
    ]
    # One call for all: the cost model's work hardly grows with the number of shapes.
    tables = evaluate_all(
        [
            (setting_of(families[0], precision, case.problem.profile), joined(readings))
            for ((_, _, precision), families), readings in zip(together.items(), promised, strict=True)
        ]
    )
    for families, readings, table in zip(together.values(), promised, tables, strict=True):
        computed = np.stack([getattr(table, name) for name in (*FIGURES.values(), "throughput")], axis=1)
        first = 0
        for family, shapes in zip(families, readings, strict=True):
            rows = slice(first, first + len(shapes.batch))
            first = rows.stop
            measured = measured_of(family)
            if measured is None:
                yield from _claims(case, family, computed[rows])
                yield from _targets(case, family, table, rows)
                continue
            entry, figure = measured
            if entry.rate is not None:
                computed[rows, NAMES.index("throughput_tokens_s")] = figure * family.question.workload.output_tokens
            yield from _claims(case, family, computed[rows])
            yield from _measured_targets(case, family, entry)


def _claims(case: Case, family: Family, computed: FloatArray) -> Iterator[Diagnostic]:
    """Compare the family's claims with the readings of its promise [readings, figures]; the kindest reading counts."""
    claimed = case.replicas.figures[family.rows][:, CLAIMED]
    distinct, which = alike(claimed)
    for number, row in enumerate(distinct.tolist()):
        apart = ~np.isclose(computed, claimed[row], rtol=TOLERANCE, atol=1e-15)
        reading = int(np.argmin(apart.sum(axis=1)))
        for column in np.flatnonzero(apart[reading]):
            said, right = float(claimed[row, column]), float(computed[reading, column])
            message = f"{family.title}: {NAMES[column]} {said:.6g} is claimed, the cost model gives {right:.6g}"
            for index in family.rows[which == number]:
                yield finding("TIME_MISMATCH", case.row_place(index), message, "evaluate the shape again at the levels where it is placed")


def _targets(case: Case, family: Family, table: TimesTable, rows: slice) -> Iterator[Diagnostic]:
    """Compare the recomputed times, at the kindest reading, with the targets."""
    slo = family.question.slo
    tpot, ttft, word_of = table.tpot[rows], table.ttft[rows], ""
    if slo is not None and slo.percentile is not None:
        tpot, ttft = _at_percentile(family, table, rows, slo.percentile, case.problem.seed)
        word_of = f"P{slo.percentile:g} of "
        yield from _tail_claims(case, family, tpot, ttft)
    for code, word, limit, value in (
        ("TPOT_MISSED", f"{word_of}time per token", None if slo is None else slo.tpot, float(np.min(tpot))),
        ("TTFT_MISSED", f"{word_of}time to first token", None if slo is None else slo.ttft, float(np.min(ttft))),
    ):
        if limit is not None and not value <= limit * MARGIN:
            message = f"{family.title}: {word} {value * 1e3:.4g} ms, asked for at most {limit * 1e3:.4g} ms"
            for index in family.rows:
                yield finding(code, case.row_place(index), message, "hold fewer sequences or take a faster shape")
    least = family.question.min_efficiency
    efficiency = float(np.max(table.efficiency[rows]))
    if least is not None and not efficiency * MARGIN >= least:
        message = f"{family.title}: efficiency {efficiency:.4g}, asked for at least {least:.4g}"
        for index in family.rows:
            yield finding("EFFICIENCY_TOO_LOW", case.row_place(index), message, "take fewer GPUs a replica and more replicas")


def _measured_targets(case: Case, family: Family, entry: Measured) -> Iterator[Diagnostic]:
    """Compare times that were measured with the targets; a figure without them was measured within the targets."""
    slo = family.question.slo
    for code, word, limit, value in (
        ("TPOT_MISSED", "time per token", None if slo is None else slo.tpot, entry.tpot),
        ("TTFT_MISSED", "time to first token", None if slo is None else slo.ttft, entry.ttft),
    ):
        if limit is not None and value is not None and not value <= limit * MARGIN:
            message = f"{family.title}: {word} {value * 1e3:.4g} ms was measured, asked for at most {limit * 1e3:.4g} ms"
            for index in family.rows:
                yield finding(code, case.row_place(index), message, "take a faster shape")


def _at_percentile(family: Family, table: TimesTable, rows: slice, percentile: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """TPOT and TTFT of the family's readings at a percentile, by the jitter of the engine on this GPU [s]."""
    constants = step_constants(f"{family.engine.name} {family.engine.version}", family.pool.gpu.architecture)
    columns = {field.name: getattr(table, field.name)[rows] for field in fields(table)}
    drawn = tails(TimesTable(**columns), constants.jitter_compute, constants.jitter_exchange, seed=seed, percentiles=(percentile,))
    return drawn.tpot[:, 0], drawn.ttft[:, 0]


def _tail_claims(case: Case, family: Family, tpot: FloatArray, ttft: FloatArray) -> Iterator[Diagnostic]:
    """Compare the percentiles that a plan claims with those drawn anew."""
    for index in family.rows:
        claimed = case.rows[index].document.tail
        right = claimed is not None and any(
            np.isclose(claimed.tpot_s, one, rtol=TOLERANCE) and np.isclose(claimed.ttft_s, other, rtol=TOLERANCE)
            for one, other in zip(tpot, ttft, strict=True)
        )
        if not right:
            message = f"{family.title}: the percentile of its times is missing or not what the cost model gives"
            yield finding("TIME_MISMATCH", case.row_place(index), message, "evaluate the shape again")

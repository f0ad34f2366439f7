"""Times are what the cost model says of the shape where it is placed, and they meet what the deployment asks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case, Family
from planner.audit.findings import differs, finding
from planner.audit.levels import placed_levels
from planner.audit.promised import joined, promised_shapes
from planner.audit.question import precision_of, setting_of
from planner.cost.evaluation import evaluate
from planner.cost.setting import Precision, TimesTable
from planner.diagnostics import Diagnostic
from planner.plan.document import ReplicaDocument

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


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every claimed figure that differs, and for every target missed."""
    together: dict[tuple[str, int, Precision], list[Family]] = {}
    for family in case.families:
        precision = precision_of(family)
        if precision is None:
            asked = f"{family.shape.weights_dtype} weights with {family.shape.kv_dtype} KV cache"
            for index in family.rows.tolist():
                message = f"{family.title}: {asked} is not what may run here"
                yield finding("PRECISION_NOT_ALLOWED", case.row_place(index), message, "use a precision asked for")
        elif family.shape.locality in family.pool.levels:
            together.setdefault((family.name, family.pool.index, precision), []).append(family)
    placed = placed_levels(case) if together else None
    for (_, _, precision), families in together.items():
        scopes = [0 if placed is None else int(placed.stage_scopes[family.rows].max()) for family in families]
        readings = [promised_shapes(family, most) for family, most in zip(families, scopes, strict=True)]
        # One setting, one call: the cost model's work hardly grows with the number of shapes.
        table = evaluate(setting_of(case.problem, families[0], precision), joined(readings))
        first = 0
        for family, shapes in zip(families, readings, strict=True):
            rows = slice(first, first + len(shapes.batch))
            first = rows.stop
            yield from _claims(case, family, table, rows)
            yield from _targets(case, family, table, rows)


def _claims(case: Case, family: Family, table: TimesTable, rows: slice) -> Iterator[Diagnostic]:
    """Compare every distinct claim of the family's replicas with the nearest reading of its promise."""
    verdicts: dict[tuple[float, ...], list[tuple[str, float, float]]] = {}
    for index in family.rows.tolist():
        replica = case.rows[index].document
        claimed = _claimed(replica)
        if claimed not in verdicts:
            verdicts[claimed] = _differences(claimed, table, rows)
        for name, said, right in verdicts[claimed]:
            yield finding(
                "TIME_MISMATCH",
                case.row_place(index),
                f"{family.title}: {name} {said:.6g} is claimed, the cost model gives {right:.6g}",
                "evaluate the shape again at the levels where it is placed",
            )


def _claimed(replica: ReplicaDocument) -> tuple[float, ...]:
    return (*(getattr(replica.times, name) for name in FIGURES), replica.throughput_tokens_s)


def _differences(claimed: tuple[float, ...], table: TimesTable, rows: slice) -> list[tuple[str, float, float]]:
    """Figures (name, claimed, recomputed) that differ under the reading with the fewest differences."""
    names = (*FIGURES, "throughput_tokens_s")
    columns = (*(getattr(table, column) for column in FIGURES.values()), table.throughput)
    fewest: list[tuple[str, float, float]] | None = None
    for reading in range(rows.start, rows.stop):
        wrong = [
            (name, said, float(column[reading]))
            for name, said, column in zip(names, claimed, columns, strict=True)
            if differs(said, float(column[reading]), TOLERANCE, 1e-15)
        ]
        if fewest is None or len(wrong) < len(fewest):
            fewest = wrong
    return fewest or []


def _targets(case: Case, family: Family, table: TimesTable, rows: slice) -> Iterator[Diagnostic]:
    """Compare the recomputed times, at the kindest reading, with the targets."""
    slo = family.question.slo
    for code, word, limit, value in (
        ("TPOT_EXCEEDED", "time per token", None if slo is None else slo.tpot, float(np.min(table.tpot[rows]))),
        ("TTFT_EXCEEDED", "time to first token", None if slo is None else slo.ttft, float(np.min(table.ttft[rows]))),
    ):
        if limit is not None and not value <= limit * MARGIN:
            message = f"{family.title}: {word} {value * 1e3:.4g} ms, asked for at most {limit * 1e3:.4g} ms"
            for index in family.rows.tolist():
                yield finding(code, case.row_place(index), message, "hold fewer sequences or take a faster shape")
    least = family.question.min_efficiency
    efficiency = float(np.max(table.efficiency[rows]))
    if least is not None and not efficiency * MARGIN >= least:
        message = f"{family.title}: efficiency {efficiency:.4g}, asked for at least {least:.4g}"
        for index in family.rows.tolist():
            yield finding("EFFICIENCY_TOO_LOW", case.row_place(index), message, "take fewer GPUs a replica and more replicas")

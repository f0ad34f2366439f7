"""Curves, crossovers, maps and smallest numbers of GPUs as plain data."""

from __future__ import annotations

from planner.calculators.crossover import Crossover
from planner.calculators.documents import Row, case_row, degrees_row, diagnostic_row, finite, room_row, terms_rows
from planner.calculators.regimes import Cell, Phase
from planner.calculators.room import GIB
from planner.calculators.scaling import Curve, Point
from planner.calculators.smallest import FrontierPoint, Held, Smallest


def point_row(curve: Curve, point: Point) -> Row:
    """One degree of a curve as a flat row."""
    return {
        **case_row(curve.case),
        "form": curve.form,
        "batch": curve.batch,
        **degrees_row(point.degrees),
        "tpot_s": finite(point.tpot),
        "compute_s": finite(point.compute),
        "communication_s": finite(point.communication),
        "speedup": finite(point.speedup),
        "efficiency": finite(point.efficiency),
        "overhead": finite(point.overhead),
        "algorithm": point.algorithm,
        "legal": point.legal,
        "fits": point.fits,
        "crosses_domain": point.crosses,
    }


def curve_document(curve: Curve) -> Row:
    """One curve with its optima."""
    own = case_row(curve.case)
    return {
        **own,
        "form": curve.form,
        "batch": curve.batch,
        "weight_bytes": finite(curve.weight_bytes),
        "points": [{key: value for key, value in point_row(curve, point).items() if key not in own} for point in curve.points],
        "time_optimal_tp": curve.time_optimal,
        "time_optimal_real": finite(curve.time_optimal_real),
        "cost_optimal": [{"threshold": threshold, "tp": degree} for threshold, degree in curve.cost_optimal],
    }


def crossover_row(item: Crossover) -> Row:
    """One fabric as a flat row; both conventions stand side by side under their names."""
    row = {
        **case_row(item.case),
        "link": item.link,
        "link_bandwidth_bytes_s": finite(item.link_bandwidth),
        "tp": item.degree,
        "layer_parameters_notes": finite(item.layer_parameters_notes),
        "layer_parameters_full": finite(item.layer_parameters),
        "crossover_batch_notes": finite(item.batch_notes),
        "crossover_batch_full": finite(item.batch_full),
        "algorithm_full": item.algorithm,
    }
    for batch, notes, full in item.decode:
        row |= {f"communication_s_notes_b{batch}": finite(notes), f"communication_s_full_b{batch}": finite(full)}
    prompt, gather, full = item.prefill
    return row | {
        "prefill_tokens": prompt,
        "prefill_communication_s_notes": finite(gather),
        "prefill_communication_s_full": finite(full),
        "crossover_prompt_notes": finite(item.prompt_notes),
        "compute_bound_from_prompt_full": finite(item.prompt_full),
    }


def cell_row(cell: Cell) -> Row:
    """One cell of the map as a flat row."""
    row = {
        **case_row(cell.case),
        **degrees_row(cell.degrees),
        "batch": cell.batch,
        "legal": cell.legal,
        "crosses_domain": cell.crosses,
    }
    for phase in cell.phases:
        row |= _phase_row(phase)
    return row


def _phase_row(phase: Phase) -> Row:
    return {
        f"{phase.name}_regime": phase.regime,
        f"{phase.name}_compute_s": finite(phase.compute),
        f"{phase.name}_communication_s": finite(phase.communication),
        f"{phase.name}_compute_over_communication": finite(phase.ratio),
        f"{phase.name}_efficiency": finite(phase.efficiency),
        f"{phase.name}_p99_over_p50": finite(phase.tail),
    }


def smallest_rows(item: Smallest) -> list[Row]:
    """Flat rows: the smallest layout (or the nearest miss), or one for each layout asked about."""
    base = {**case_row(item.case), "memory_gib": finite(item.case.setting.gpu.nominal_memory / GIB), "batch": item.batch}
    base["tp_by_memory"] = item.by_memory
    if item.asked:
        return [{**base, "answer": "asked", **_held_row(held)} for held in item.asked]
    if item.held is not None:
        return [{**base, "answer": "smallest", **_held_row(item.held)}]
    if item.nearest is not None:
        return [{**base, "answer": "nearest miss", **_held_row(item.nearest)}]
    return [{**base, "answer": "none legal"}]


def _held_row(held: Held) -> Row:
    found = " ".join(dict.fromkeys(finding.code for finding in (*held.findings, *held.room.findings)))
    return {**degrees_row(held.degrees), "legal": held.legal, **room_row(held.room), "words": held.room.words, "codes": found}


def smallest_document(item: Smallest) -> Row:
    """One case with its layouts, the terms of their fullest ranks, and the frontier."""
    layouts = item.asked or tuple(held for held in (item.held, item.nearest) if held is not None)
    return {
        **case_row(item.case),
        "memory_gib": finite(item.case.setting.gpu.nominal_memory / GIB),
        "batch": item.batch,
        "tp_by_memory": item.by_memory,
        "smallest_gpus": None if item.held is None else item.held.degrees.gpus,
        "layouts": [_layout(item, held) for held in layouts],
        "frontier": [frontier_row(point) for point in item.frontier],
    }


def _layout(item: Smallest, held: Held) -> Row:
    answer = "asked" if item.asked else "smallest" if held is item.held else "nearest miss"
    found = [diagnostic_row(finding) for finding in (*held.findings, *held.room.findings)]
    row = {key: value for key, value in _held_row(held).items() if key != "codes"}
    return {"answer": answer, **row, "terms": terms_rows(held.room), "findings": found}


def frontier_row(point: FrontierPoint) -> Row:
    """What each of some ranks must hold."""
    return {
        "gpus": point.gpus,
        "needed_gib": finite((point.weights + point.context + point.other) / GIB),
        "weights_gib": finite(point.weights / GIB),
        "kv_gib": finite(point.context / GIB),
        "other_gib": finite(point.other / GIB),
        "budget_gib": finite(point.budget / GIB),
        "fits": point.fits,
    }

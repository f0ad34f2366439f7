"""Layouts of a case as columns: evaluated together, each with its memory, its times and everything that forbids it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.calculators.question import Case
from planner.candidates.batches import as_columns
from planner.candidates.legality import violations
from planner.cost.evaluation import evaluate
from planner.cost.hockney import active_bytes, active_parameters
from planner.cost.memory import MemoryTable, memory
from planner.cost.setting import ShapeArrays, TimesTable
from planner.diagnostics import Diagnostic, Severity, errors
from planner.plan.shape import Degrees

Row = tuple[Degrees, int]  # degrees and batch


@dataclass(frozen=True)
class Evaluated:
    """Rows of one case with their shapes, memory and times; the memory of a pipeline deeper than the model has layers is that of one as deep."""

    case: Case
    rows: tuple[Row, ...]
    shapes: ShapeArrays
    memory: MemoryTable
    times: TimesTable

    def findings(self, row: int) -> tuple[Diagnostic, ...]:
        """Everything that speaks against a row whatever its memory: the engine's rules, and where the links end."""
        return findings(self.case, self.rows[row][0])

    def legal(self, row: int) -> bool:
        """Whether the engine starts with these degrees; links do not count."""
        return not errors(self.findings(row))


def shape_arrays(case: Case, rows: Sequence[Row]) -> ShapeArrays:
    """Columns of degrees and batches on the hardware of a case."""
    table: list[tuple[int, ...]] = []
    for degrees, batch in rows:
        layout = case.hardware.layout(degrees)
        table.append(
            (
                degrees.tensor_parallel,
                degrees.pipeline_parallel,
                degrees.expert_parallel,
                degrees.data_parallel,
                batch,
                layout.tp_level,
                layout.stage_level,
                layout.stage_scopes,
                layout.replica_level,
            )
        )
    return ShapeArrays(*as_columns(table))


def evaluate_rows(case: Case, rows: Sequence[Row]) -> Evaluated:
    """Evaluate degrees and batches of one case."""
    shapes = shape_arrays(case, rows)
    times = on_paper(case, shapes, evaluate(case.setting, shapes))
    layers = case.setting.architecture.layers
    held = replace(shapes, pipeline_parallel=np.minimum(shapes.pipeline_parallel, layers))
    return Evaluated(case, tuple(rows), shapes, memory(case.setting, held), times)


def on_paper(case: Case, shapes: ShapeArrays, times: TimesTable) -> TimesTable:
    """The textbook times with the weights and parameters that somebody counted himself, W / (t BW) and 2 P S / (t F)."""
    counts = case.counts
    if counts.weight_bytes is not None:
        ratio = counts.weight_bytes / sum(active_bytes(case.setting))
        compute = times.compute * ratio
        exchange = times.tp_comm + times.pp_comm + times.ep_comm
        tpot = compute + exchange
        # latency efficiency = T(1) / (n T(n)), whose T(1) is all weights.
        latency = times.latency_efficiency * ratio * times.tpot / tpot
        times = replace(
            times,
            compute=compute,
            tpot=tpot,
            overhead=exchange / compute,
            latency_efficiency=latency,
            efficiency=latency * (1.0 - times.bubble),
            throughput=shapes.batch / tpot,
        )
    if counts.parameters is not None:
        compute = times.prefill_compute * counts.parameters / sum(active_parameters(case.setting))
        times = replace(times, prefill_compute=compute, ttft=compute + times.prefill_comm)
    return times


def findings(case: Case, degrees: Degrees) -> tuple[Diagnostic, ...]:
    """The engine's rules, all broken ones at once, then what the links say: CROSS_NODE_TP and NOT_ENOUGH_GPUS."""
    setting, hardware = case.setting, case.hardware
    found = list(violations(setting.architecture, setting.precision, case.context.engine, setting.gpu, degrees))
    if hardware.crosses(degrees):
        outer = hardware.path(hardware.level_of(degrees.tensor_parallel)).link.name
        message = f"TP {degrees.tensor_parallel} leaves the scale-up domain of {hardware.domain}: its all-reduces cross {outer}"
        hint = (
            f"TP up to {hardware.domain} with PP across keeps them inside" if hardware.domain > 1 else "a scale-up link keeps them inside"
        )
        found.append(Diagnostic("CROSS_NODE_TP", message, hint, Severity.WARNING))
    if hardware.nodes is not None and degrees.gpus > hardware.nodes * hardware.domain:
        message = f"{degrees} takes {degrees.gpus} GPUs, {hardware.nodes} x {hardware.domain} are there"
        found.append(Diagnostic("NOT_ENOUGH_GPUS", message, f"--nodes {-(-degrees.gpus // hardware.domain)} holds it"))
    return tuple(found)


def powers(most: int) -> tuple[int, ...]:
    """Powers of two up to `most`."""
    return tuple(1 << step for step in range(most.bit_length()))


def select_times(times: TimesTable, row: int) -> TimesTable:
    """One row of a table of times."""
    return TimesTable(**{name: getattr(times, name)[row : row + 1] for name in TimesTable.__dataclass_fields__})

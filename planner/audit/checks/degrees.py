"""Degrees are positive and allowed, the expert degree fits the stage, and the partition spreads all layers over the stages."""

from __future__ import annotations

from collections.abc import Iterator

from planner.audit.case import Case
from planner.audit.columns import ReplicaRow
from planner.audit.families import LARGEST_BATCH, LARGEST_DEGREE
from planner.audit.findings import finding
from planner.audit.spare_gpus import with_spares
from planner.diagnostics import Diagnostic
from planner.plan.document import ShapeDocument

DEGREES = (("tp", "tensor parallelism"), ("pp", "pipeline parallelism"), ("ep", "expert parallelism"), ("dp", "data parallelism"))


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic per replica and broken rule; replicas of one shape are looked at once and reported each."""
    case = with_spares(case)
    for rows in case.groups:
        faults = tuple(_faults(case, case.rows[int(rows[0])]))
        for index in rows if faults else ():
            for code, message, hint in faults:
                yield finding(code, case.row_place(index), message, hint)


def _faults(case: Case, row: ReplicaRow) -> Iterator[tuple[str, str, str]]:
    """Faults of one shape as (code, message, hint)."""
    shape = row.document.shape
    for name, words in DEGREES:
        if getattr(shape, name) < 1:
            yield "DEGREE_NOT_POSITIVE", f"{name} is {getattr(shape, name)}", f"{words} is at least 1"
    if shape.batch < 1:
        yield "BATCH_NOT_POSITIVE", f"batch is {shape.batch}", "a replica holds at least one sequence"
    if shape.dp >= 1 and 1 <= shape.batch < shape.dp:
        yield (
            "BATCH_BELOW_DP",
            f"batch {shape.batch} leaves some of {shape.dp} data-parallel ranks idle",
            f"hold at least {shape.dp} sequences",
        )
    if max(shape.tp, shape.pp, shape.ep, shape.dp) > LARGEST_DEGREE or shape.batch > LARGEST_BATCH:
        yield "FIGURE_NOT_VALID", "a degree or the batch is larger than any machine is", f"degrees go up to {LARGEST_DEGREE}"
    stage = shape.tp * shape.dp
    if shape.ep >= 1 and stage >= 1 and stage % shape.ep:
        yield (
            "EP_DOES_NOT_DIVIDE_STAGE",
            f"EP {shape.ep} does not divide the {stage} GPUs of a stage (TP {shape.tp} x DP {shape.dp})",
            "choose an EP that divides TP x DP",
        )
    asked = case.asked.get(row.name)
    if asked is None:
        return
    allowed = case.problem.deployments[asked].parallelism
    for name, words in DEGREES if allowed is not None else ():
        choices = allowed_degrees(getattr(allowed, name))
        if choices and getattr(shape, name) not in choices:
            listed = ", ".join(map(str, choices))
            yield "DEGREE_NOT_ALLOWED", f"{name} {getattr(shape, name)}, the deployment allows {listed}", f"choose a {words} of {listed}"
    yield from _partition(shape, case.architectures[asked].layers)


def allowed_degrees(value: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """Allowed values of one degree; empty when the deployment leaves it open."""
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)


def _partition(shape: ShapeDocument, layers: int) -> Iterator[tuple[str, str, str]]:
    partition = shape.partition
    if len(partition) != shape.pp:
        yield "PARTITION_MISMATCH", f"the partition names {len(partition)} stages, PP is {shape.pp}", "name the layers of every stage"
    if partition and min(partition) < 1:
        stage = partition.index(min(partition))
        yield "PARTITION_MISMATCH", f"stage {stage} has {partition[stage]} layers", "give every stage at least one layer"
    if sum(partition) != layers:
        yield "PARTITION_MISMATCH", f"the stages hold {sum(partition)} layers, the model has {layers}", f"spread all {layers} layers"

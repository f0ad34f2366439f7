"""Figures of the deployment's own, by the shape that they were measured for."""

from __future__ import annotations

from planner.audit.families import Family
from planner.plan.document import ShapeDocument
from planner.problem.documents import Deployment
from planner.problem.workload import WHOLE, Measured


def measured_entry(question: Deployment, shape: ShapeDocument) -> Measured | None:
    """Figures given for a shape; None where there are none."""
    degrees = (shape.tp, shape.pp, shape.ep, shape.dp)
    for entry in question.throughput or ():
        if entry.gpu == shape.gpu and (entry.tp, entry.pp, entry.ep, entry.dp) == degrees:
            return entry
    return None


def measured_of(family: Family) -> tuple[Measured, float] | None:
    """Figures given for the shape of a family, and the one for what it serves; None where the deployment gives none at all.

    A shape that nothing was measured of serves nothing beside measured ones: its figure is 0.
    """
    question = family.question
    if not question.throughput:
        return None
    entry = measured_entry(question, family.shape)
    if entry is None:
        return Measured(gpu=family.shape.gpu, rate={WHOLE: 0.0}), 0.0
    given = entry.rate if entry.rate is not None else (entry.sequences or {})
    bucket = question.name.rpartition(BUCKET_MARK)[2] if WHOLE not in given else WHOLE
    return entry, float(given.get(bucket, 0.0))


BUCKET_MARK = ":"
"""What stands between the name of a deployment and that of a bucket where buckets are looked at one by one; neither name holds it."""

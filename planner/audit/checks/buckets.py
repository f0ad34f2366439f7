"""Every bucket is covered by the fractions of replicas that serve it, no replica is overfull, and no bucket is split finer than asked."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator

from planner.audit.case import Case
from planner.audit.columns import finite_or_huge
from planner.audit.findings import deployment_place, differs, finding
from planner.audit.measured import measured_entry
from planner.audit.question import SEQUENCES, load_asked
from planner.diagnostics import Diagnostic
from planner.plan.document import BucketDocument, DeploymentDocument, ReplicaDocument
from planner.problem.documents import Deployment
from planner.problem.workload import Bucket

TOLERANCE = 1e-6


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every bucket misread, not covered or split too far, and every replica overfull or misstated."""
    questions = {asked.name: asked for asked in case.problem.deployments}
    for answer in case.plan.deployments:
        asked = questions.get(answer.name)
        if asked is None:
            continue
        known = {bucket.title: bucket for bucket in asked.workload.buckets or ()}
        for number, replica in enumerate(answer.replicas):
            if not replica.buckets:
                continue
            for code, message, hint in _replica(asked, known, replica):
                yield finding(code, deployment_place(answer.name, number), message, hint)
        if known:
            for code, message, hint in (*_coverage(case, asked, answer), *_slices(case, asked, answer)):
                yield finding(code, deployment_place(answer.name), message, hint)


def served(asked: Deployment, answer: DeploymentDocument) -> dict[str, float]:
    """Load of every bucket that the replicas serve, in the deployment's unit: what fits their fractions, and no more than they claim."""
    found = {bucket.title: 0.0 for bucket in asked.workload.buckets or ()}
    for replica in answer.replicas:
        for item in replica.buckets:
            if item.name in found:
                found[item.name] += min(item.load, item.fraction * carried(asked, replica, item))
    return found


def carried(asked: Deployment, replica: ReplicaDocument, item: BucketDocument) -> float:
    """What a replica carries of a bucket alone, in the deployment's unit: as measured, by its batch, or by its throughput."""
    entry = measured_entry(asked, replica.shape)
    if asked.throughput:
        given = {} if entry is None else (entry.rate if entry.rate is not None else entry.sequences or {})
        most = float(given.get(item.name, 0.0))
        return min(most, finite_or_huge(item.batch)) if load_asked(asked)[1] == SEQUENCES else most
    if load_asked(asked)[1] == SEQUENCES:
        return finite_or_huge(item.batch)
    return finite_or_huge(item.throughput_tokens_s) / max(item.output_tokens, 1)


def _replica(asked: Deployment, known: dict[str, Bucket], replica: ReplicaDocument) -> Iterator[tuple[str, str, str]]:
    """Faults of one replica that serves buckets, as (code, message, hint)."""
    for name, count in Counter(item.name for item in replica.buckets).items():
        if name not in known:
            yield "BUCKET_UNKNOWN", f"nobody asked for a bucket {name}", "leave it out"
        elif count > 1:
            yield "BUCKET_UNKNOWN", f"bucket {name} is listed {count} times", "list it once"
    for item in replica.buckets:
        bucket = known.get(item.name)
        if bucket is None:
            continue
        figures = (item.fraction, item.load, item.capacity, item.throughput_tokens_s)
        if not all(math.isfinite(figure) and figure >= 0 for figure in figures):
            yield "FIGURE_NOT_VALID", f"a figure of bucket {item.name} is negative or no finite number", "write the figure the shape has"
            continue
        if (item.prompt_tokens, item.output_tokens) != (bucket.prompt_tokens, bucket.output_tokens):
            yield "BUCKET_MISMATCH", f"bucket {item.name} is of other lengths than asked", "write the lengths asked"
        right = carried(asked, replica, item)
        if differs(item.capacity, right, TOLERANCE):
            message = f"{item.capacity:g} of bucket {item.name} are claimed for a whole replica, it carries {right:g}"
            yield "CAPACITY_MISMATCH", message, "a replica carries what was measured, its batch, or its throughput"
        if differs(item.load, item.fraction * item.capacity, TOLERANCE, TOLERANCE):
            message = f"{item.load:g} of bucket {item.name} do not take {item.fraction:.4g} of a replica that carries {item.capacity:g}"
            yield "BUCKET_MISMATCH", message, "the load is the fraction times the capacity"
    total = math.fsum(item.fraction for item in replica.buckets)
    if not total <= 1 + TOLERANCE:
        yield "REPLICA_OVERFULL", f"its buckets take {total:.6g} of the replica", "move requests to another replica"
    yield from _one_figure(replica, total)


def _one_figure(replica: ReplicaDocument, total: float) -> Iterator[tuple[str, str, str]]:
    """Figures of the whole replica: those of its main bucket, capacity and throughput at its mix."""
    main = max(replica.buckets, key=lambda item: item.fraction)
    mains = [item for item in replica.buckets if not differs(item.fraction, main.fraction, TOLERANCE)]
    stated = (replica.shape.batch, replica.memory, replica.times)
    if stated not in [(item.batch, item.memory, item.times) for item in mains]:
        yield "BUCKET_MISMATCH", f"batch, memory and times are not those of bucket {main.name}, which takes most of it", "give its figures"
    if not total > 0:
        return
    for code, claimed, right in (
        ("CAPACITY_MISMATCH", replica.capacity, math.fsum(item.load for item in replica.buckets) / total),
        (
            "TIME_MISMATCH",
            replica.throughput_tokens_s,
            math.fsum(item.fraction * item.throughput_tokens_s for item in replica.buckets) / total,
        ),
    ):
        if differs(claimed, right, TOLERANCE):
            yield code, f"{claimed:g} is claimed for the whole replica, at its mix of buckets it is {right:g}", "add up its buckets"


def _coverage(case: Case, asked: Deployment, answer: DeploymentDocument) -> Iterator[tuple[str, str, str]]:
    if case.problem.objective == "throughput" or asked.may_go_unserved:
        return
    load, unit = load_asked(asked)
    found = served(asked, answer)
    for bucket in asked.workload.buckets or ():
        wanted, has = load * float(bucket.part), found[bucket.title]
        if not has >= wanted * (1 - TOLERANCE):
            message = f"{has:g} of the {wanted:g} {unit} of bucket {bucket.title} are served: {wanted - has:g} missing"
            yield "LOAD_NOT_COVERED", message, "give the bucket a larger part of the replicas, or add one"


def _slices(case: Case, asked: Deployment, answer: DeploymentDocument) -> Iterator[tuple[str, str, str]]:
    """Where buckets may only be cut into so many slices, every shape serves whole ones."""
    slices = asked.workload.slices
    if slices is None or case.problem.objective == "throughput":
        return
    load = load_asked(asked)[0]
    of_shape: dict[tuple[object, ...], float] = defaultdict(float)
    for row, pool in zip(case.rows, case.row_pool.tolist(), strict=True):
        if row.name == answer.name:
            shape = row.document.shape.model_copy(update={"batch": 0})
            for item in row.document.buckets:
                of_shape[item.name, pool, shape] += item.load
    parts = {bucket.title: load * float(bucket.part) / slices for bucket in asked.workload.buckets or ()}
    for (name, *_), total in of_shape.items():
        count = total / parts.get(str(name), math.inf)
        if abs(count - round(count)) > TOLERANCE * max(1.0, count):
            message = f"{count:.6g} slices of bucket {name} go to one shape, each is one of {slices}"
            yield "BUCKET_SPLIT", message, "send whole slices to a shape, or leave `slices` out"

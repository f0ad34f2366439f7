"""What replicas of one shape serve of the buckets of their load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.plan.document import ReplicaDocument
from planner.report.words import milliseconds, percent


def bucket_lines(replicas: Sequence[ReplicaDocument], unit: str) -> Iterator[str]:
    """One line for every bucket: the load that these replicas take of it, the part of a replica it fills, and its own times."""
    for index, item in enumerate(replicas[0].buckets):
        load = sum(other.load for replica in replicas for other in replica.buckets if other.name == item.name)
        title = "buckets" if index == 0 else ""
        each = " of each replica" if len(replicas) > 1 else " of the replica"
        yield (
            f"{title:<16} {item.name}: {load:,.4g} {unit}, {percent(item.fraction, 1)}{each}; batch {item.batch}, "
            f"{milliseconds(item.times.tpot_s)} a token, first token {milliseconds(item.times.ttft_s)}"
        )

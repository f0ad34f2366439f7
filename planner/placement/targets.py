"""Times as placed against what the deployment asks: time per token, time to first token, efficiency."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.candidates.batches import largest_batch
from planner.cost.setting import TimesTable
from planner.diagnostics import Diagnostic
from planner.placement.figures import Replica

# Targets are met when they are met to the precision that the auditor compares times with.
MARGIN = 1 + 1e-6


def target_findings(replica: Replica, batch: int, times: TimesTable) -> Iterator[Diagnostic]:
    """One error for every target that the replica misses at its batch; `times` has one row."""
    targets = replica.context.targets
    late = [
        (code, word, limit, float(value))
        for code, word, limit, value in (
            ("TPOT_MISSED", "time per token", targets.tpot, times.tpot[0]),
            ("TTFT_MISSED", "time to first token", targets.ttft, times.ttft[0]),
        )
        if not float(value) <= limit * MARGIN
    ]
    most = _most_in_time(replica, batch) if late else batch
    for code, word, limit, value in late:
        message = f"{word} {value * 1e3:.1f} ms at {batch} sequences, asked for at most {limit * 1e3:.1f}: {value / limit - 1:.0%} too long"
        hint = (
            f"hold at most {most} sequences a replica and add replicas"
            if most
            else "not even one sequence is fast enough: take a faster shape or GPU"
        )
        yield Diagnostic(code, message, hint)
    efficiency, least = float(times.efficiency[0]), targets.min_efficiency
    if least and not efficiency * MARGIN >= least:
        message = f"efficiency {efficiency:.0%} at {batch} sequences, asked for at least {least:.0%}"
        yield Diagnostic("EFFICIENCY_TOO_LOW", message, "take fewer GPUs a replica and more replicas")


def _most_in_time(replica: Replica, batch: int) -> int:
    """Largest batch below `batch` that meets both latency targets; 0 where none does."""
    return int(largest_batch(lambda _, asked: replica.times(asked), np.array([batch]), replica.context.targets)[0])

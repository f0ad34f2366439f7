"""For every shape that runs, as many sets of GPUs are kept free as replicas of it may be lost at once.

That these GPUs are free, used by nothing else, near enough and paid for is looked at by the checks of those names, as if replicas ran there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from planner.audit.case import Case
from planner.audit.findings import deployment_place, finding
from planner.diagnostics import Diagnostic
from planner.plan.document import SpareDocument


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every shape with too few spares, and for spares that nobody asked for."""
    pools = case.row_pool.tolist()
    for answer in case.plan.deployments:
        asked = next((item for item in case.problem.deployments if item.name == answer.name), None)
        if asked is None or not (asked.spares or answer.spares):
            continue
        place = deployment_place(answer.name)
        running = Counter((pool, row.document.shape) for row, pool in zip(case.rows, pools, strict=True) if row.name == answer.name)
        kept = Counter((_pool(case, spare), spare.shape) for spare in answer.spares)
        for (pool, shape), count in running.items():
            wanted, has = min(asked.spares, count), kept[pool, shape]
            if has < wanted:
                message = (
                    f"{has} spare sets of {shape.tp * shape.pp * shape.dp} {shape.gpu} are kept free, {wanted} lost replicas must find one"
                )
                yield finding("SPARES_MISSING", place, message, "keep more GPUs free, or ask for fewer `spares`")
        for (pool, shape), count in kept.items():
            if count > min(asked.spares, running[pool, shape]):
                message = f"{count} spare sets of {shape.gpu} are kept free, {min(asked.spares, running[pool, shape])} are asked for"
                yield finding("SPARES_NOT_ASKED", place, message, "free the others")


def _pool(case: Case, spare: SpareDocument) -> int:
    """Pool that spare GPUs are of; -1 where the topology does not have them."""
    node = spare.ranks[0].node if spare.ranks else ""
    return case.fabric.pool(node).index if node in case.sites.node_codes else -1

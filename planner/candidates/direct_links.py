"""Where NVLink is asked for: groups whose ranks exchange in every layer stay on GPUs that are joined directly."""

from __future__ import annotations

from planner.candidates.degrees import Layout
from planner.problem.documents import Deployment
from planner.topology.fabric import Pool

DIRECT_LINKS = frozenset({"nvlink", "xgmi", "ici"})


def without_nvlink(deployment: Deployment, pool: Pool, layout: Layout) -> tuple[str, str] | None:
    """Code and sentence of what `require_nvlink` forbids in a layout; None where it asks nothing, or is kept."""
    if not deployment.require_nvlink:
        return None
    degrees = layout.degrees
    # A group holds whole TP groups, so that they are no further apart than it is.
    link = pool.paths[min(layout.tp_level, layout.group_level)].link
    if degrees.tensor_parallel > 1 and link.kind not in DIRECT_LINKS:
        return "NVLINK_REQUIRED", f"a TP group of {degrees.tensor_parallel} is joined by {link.name}, NVLink is asked for"
    link = pool.paths[min(layout.stage_level, layout.group_level) if layout.stage_scopes == 1 else layout.stage_level].link
    if degrees.expert_parallel > 1 and (layout.stage_scopes > 1 or link.kind not in DIRECT_LINKS):
        where = f"{layout.stage_scopes} domains" if layout.stage_scopes > 1 else "a host"
        message = f"EP {degrees.expert_parallel} spans {where} joined by {link.name}, NVLink is asked for"
        return "CROSS_NVLINK_DOMAIN_EP", message
    return None

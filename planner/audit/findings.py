"""How the auditor words what it finds: one code, the figures, the place, and what would repair it."""

from __future__ import annotations

import math

from planner.diagnostics import Diagnostic, Place

GIB = 2**30


def deployment_place(deployment: str, replica: int | None = None, rank: int | None = None) -> Place:
    """Place of a deployment, of one of its replicas, or of one rank, as a path into the plan document."""
    parts = ["deployments", deployment]
    if replica is not None:
        parts += ["replicas", str(replica)]
    if rank is not None:
        parts += ["ranks", str(rank)]
    return Place(path=".".join(parts))


def finding(code: str, place: Place | str, message: str, hint: str) -> Diagnostic:
    """One violation; `place` is a path into the plan document when given as text."""
    return Diagnostic(code=code, message=message, hint=hint, place=Place(path=place) if isinstance(place, str) else place)


def differs(claimed: float, recomputed: float, relative: float, absolute: float = 0.0) -> bool:
    """Whether two figures disagree by more than a relative and an absolute tolerance; what is not finite agrees with nothing else."""
    if not (math.isfinite(claimed) and math.isfinite(recomputed)):
        return claimed != recomputed
    return abs(claimed - recomputed) > relative * max(abs(claimed), abs(recomputed)) + absolute

"""How the auditor words what it finds: one code, the figures, the place, and what would repair it."""

from __future__ import annotations

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
    """Whether two figures disagree by more than a relative and an absolute tolerance; NaN disagrees with everything."""
    return not abs(claimed - recomputed) <= relative * max(abs(claimed), abs(recomputed)) + absolute


def sample(items: list[str], shown: int = 8) -> str:
    """The first few of a list in words, with how many were left out."""
    rest = len(items) - shown
    return ", ".join(items[:shown]) + (f" and {rest} more" if rest > 0 else "")

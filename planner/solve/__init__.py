"""THE FORMULATION: the only room that imports a solver."""

from __future__ import annotations

from planner.solve.answer import solve
from planner.solve.options import Progress, SolveOptions

__all__ = ["Progress", "SolveOptions", "solve"]

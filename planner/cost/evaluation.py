"""Times of many shapes at once, by the profile that the setting names."""

from __future__ import annotations

from planner.cost.calibrated import evaluate_calibrated
from planner.cost.setting import Setting, ShapeArrays, TimesTable
from planner.diagnostics import Diagnostic, PlannerError

PROFILES = ("calibrated", "hockney")


def evaluate(setting: Setting, shapes: ShapeArrays, *, against_one: bool = True) -> TimesTable:
    """Evaluate the times of every shape.

    Parameters
    ----------
    setting
        Model, precision, engine, GPU, paths, lengths, and the `profile`: "calibrated" (measured constants) or "hockney" (the textbook).
    shapes
        n shapes as columns.
    against_one
        Whether to compare with one GPU at the same batch; without, `efficiency` and `latency_efficiency` may be NaN, which is a quarter less work.

    Raises
    ------
    PlannerError
        UNKNOWN_PROFILE for any other name.
    """
    if setting.profile == "calibrated":
        return evaluate_calibrated(setting, shapes, against_one=against_one)
    if setting.profile == "hockney":
        from planner.cost.hockney import evaluate_hockney

        return evaluate_hockney(setting, shapes)
    raise PlannerError([Diagnostic("UNKNOWN_PROFILE", f"no profile is called {setting.profile!r}", f"write one of {', '.join(PROFILES)}")])

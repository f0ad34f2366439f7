"""What is said to stay runs there already, what is said to move does not, and the moves and their price are counted right."""

from __future__ import annotations

from collections.abc import Iterator

from planner.audit.case import Case
from planner.audit.checks.document import EMPTY_STATUSES
from planner.audit.findings import differs, finding
from planner.audit.running import kept_rows, move_price
from planner.diagnostics import Diagnostic

TOLERANCE = 1e-6


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every replica said to stay that does not, or the other way round, and every sum that is wrong."""
    claimed, asked = case.plan.current, case.problem.current
    if asked is None or case.plan.status in EMPTY_STATUSES:
        if claimed is not None:
            yield finding("MOVES_MISMATCH", "current", "the plan counts moves from a plan that nobody named", "leave it out")
        return
    kept = kept_rows(case)
    if claimed is None:
        # The plan that runs, as it was before anybody asked what becomes of it, moves nothing.
        if not all(kept):
            yield finding("MOVES_MISMATCH", "current", "the plan does not say what becomes of the plan that runs", "count the moves")
        return
    counts = {"kept": 0, "moved": 0, "new": 0}
    for index, stays in enumerate(kept):
        said = case.rows[index].document.change
        if said is not None:
            counts[said] += 1
        if (said == "kept") != stays:
            message = "it runs on these very GPUs already" if stays else "no replica of the current plan runs like this on these GPUs"
            yield finding("MOVES_MISMATCH", case.row_place(index), f"the replica is called {said}; {message}", "compare rank by rank")
    running = 0 if case.current is None else len(case.current.replicas)
    moves = len(kept) - sum(kept)
    expected = {**counts, "moves": moves, "stopped": running - counts["kept"] - counts["moved"]}
    for name, value in expected.items():
        if getattr(claimed, name) != value:
            yield finding("MOVES_MISMATCH", f"current.{name}", f"{getattr(claimed, name)} {name} are claimed, it is {value}", "count again")
    if expected["stopped"] < 0:
        yield finding("MOVES_MISMATCH", "current.moved", "more replicas are said to move than run", "call the others new")
    figures = (
        ("price_per_move", claimed.price_per_move, asked.price_per_move),
        ("over_hours", claimed.over_hours, asked.over / 3600),
        ("moves_per_hour", claimed.moves_per_hour, moves * move_price(case)),
    )
    for name, said_figure, right in figures:
        if differs(said_figure, right, TOLERANCE, TOLERANCE):
            yield finding("MOVES_MISMATCH", f"current.{name}", f"{name} {said_figure:.6g} is claimed, it is {right:.6g}", "compute it anew")

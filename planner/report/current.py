"""What becomes of the plan that runs, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from planner.plan.document import CurrentDocument, PlanDocument, ReplicaDocument
from planner.report.words import money, per_hour, quantity_of

MOST_NOT_KEPT = 8


def move_words(current: CurrentDocument, currency: str) -> str:
    """How many moves at which price: `2 moves at $3.00 once, spread over 24 h: $0.25/h`."""
    price = f"{money(current.price_per_move, currency)} once, spread over {current.over_hours:g} h"
    return f"{quantity_of(current.moves, 'move')} at {price}: {per_hour(current.moves_per_hour, currency)}"


def change_words(replicas: Iterable[ReplicaDocument]) -> str:
    """What becomes of replicas alike: ` (2 kept, 1 moved)`; empty where no plan runs."""
    counts = Counter(replica.change for replica in replicas)
    shown = [f"{counts[change]} {change}" for change in ("kept", "moved", "new") if counts[change]]
    return f" ({', '.join(shown)})" if shown else ""


def current_lines(plan: PlanDocument) -> Iterator[str]:
    """Lines about the plan that runs: what stays, what moves and for how much, and what could not stay."""
    current = plan.current
    if current is None:
        return
    yield f"running plan   {current.kept} kept, {current.moved} moved, {current.new} new, {current.stopped} stopped"
    yield f"  {move_words(current, plan.currency)} in the objective"
    reasons: dict[tuple[str, str], list[int]] = {}
    for item in current.not_kept:
        reasons.setdefault((item.deployment, item.message), []).append(item.replica)
    for (deployment, message), numbers in list(reasons.items())[:MOST_NOT_KEPT]:
        shown = ", ".join(map(str, numbers[:MOST_NOT_KEPT])) + (" ..." if len(numbers) > MOST_NOT_KEPT else "")
        yield f"  cannot stay   {deployment} {shown}: {message}"
    if len(reasons) > MOST_NOT_KEPT:
        yield f"  cannot stay   {len(reasons) - MOST_NOT_KEPT} more reasons (all of them with --json)"
    yield ""

"""What becomes of the plan that runs: of every replica of the new plan whether it is kept, moved or new, and what that costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from planner.candidates.menu import Menu
from planner.plan.document import CurrentDocument, NotKeptDocument
from planner.plan.outcome import Outcome
from planner.problem.load import LoadedProblem

Change = Literal["kept", "moved", "new"]
Kind = tuple[object, ...]


def changes(loaded: LoadedProblem, outcome: Outcome) -> list[Change | None]:
    """Say of every replica whether it is kept, moved or new; None where no plan runs.

    A replica is moved when one of the same deployment, GPU type, degrees and formats runs now and is not kept; each of those stands for one.
    """
    if loaded.current is None:
        return [None] * len(outcome.replicas)
    names = [deployment.name for deployment in loaded.problem.deployments]
    gpus = [pool.gpu.name for pool in loaded.fabric.pools]

    def kind_of(index: int) -> Kind:
        shape = outcome.replicas[index].shape
        degrees = shape.degrees
        parallel = (degrees.tensor_parallel, degrees.pipeline_parallel, degrees.expert_parallel, degrees.data_parallel)
        return (names[shape.deployment], gpus[shape.pool], *parallel, shape.weights_dtype, shape.kv_dtype)

    left: Counter[Kind] = Counter(
        (one.deployment, one.gpu, one.tp, one.pp, one.ep, one.dp, one.weights_dtype, one.kv_dtype) for one in loaded.current.replicas
    )
    left.subtract(kind_of(index) for index, stays in enumerate(outcome.stays) if stays)
    found: list[Change | None] = []
    for index, stays in enumerate(outcome.stays):
        kind = kind_of(index)
        moved = not stays and left[kind] > 0
        left[kind] -= moved
        found.append("kept" if stays else "moved" if moved else "new")
    return found


def current_document(loaded: LoadedProblem, menu: Menu, outcome: Outcome, found: Sequence[Change | None]) -> CurrentDocument | None:
    """Sum of the changes with their price; None where no plan runs or there is no new one."""
    asked = loaded.problem.current
    if asked is None or loaded.current is None or not outcome.has_plan:
        return None
    counts = Counter(found)
    moves = counts["moved"] + counts["new"]
    return CurrentDocument(
        price_per_move=asked.price_per_move,
        over_hours=asked.over / 3600.0,
        kept=counts["kept"],
        moved=counts["moved"],
        new=counts["new"],
        stopped=len(loaded.current.replicas) - counts["kept"] - counts["moved"],
        moves=moves,
        moves_per_hour=moves * asked.price_per_hour,
        not_kept=tuple(
            NotKeptDocument(deployment=item.deployment, replica=item.number, code=item.code, message=item.message) for item in menu.not_kept
        ),
    )

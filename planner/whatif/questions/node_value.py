"""What one more node of each group is worth: to the cost of the loads as they are, and to the loads that fit."""

from __future__ import annotations

from typing import Any

from planner.quantities import format_money
from planner.whatif.patching import Base
from planner.whatif.questions import Question
from planner.whatif.questions.groups import groups_of
from planner.whatif.questions.served import greatest_share
from planner.whatif.results import QuestionResult
from planner.whatif.study import Study


def read(base: Base) -> Question:
    """Nothing is to be read; the topology needs node groups.

    Raises
    ------
    PlannerError
        UNKNOWN_PATH where it has none.
    """
    if not groups_of(base):
        from planner.whatif.questions.groups import group_named

        group_named(base, "nodes")
    return _answer


def _answer(study: Study) -> QuestionResult:
    before = study.base_solved
    share_now, proved = greatest_share(study, study.base.loaded)
    rows: list[dict[str, Any]] = []
    for group in groups_of(study.base):
        more = group.change(group.nodes + 1)
        answer = study.solved(more)
        share, sure = greatest_share(study, study.loaded((more,)))
        proved = proved and sure
        saved = None
        if answer.found and before.found and answer.plan.cost_per_hour is not None and before.plan.cost_per_hour is not None:
            saved = before.plan.cost_per_hour - answer.plan.cost_per_hour
        rows.append(
            {
                "group": group.name,
                "nodes": group.nodes,
                "status": answer.status,
                "saves_per_hour": saved,
                "load": round(share, 4),
                "load_gained": round(share - share_now, 4),
            }
        )
    best = max(rows, key=lambda row: (row["saves_per_hour"] or 0.0, row["load_gained"]))
    words = f"one more node of {best['group']} is worth most: "
    if not before.found and best["status"] in {"optimal", "feasible"}:
        words += "with it the loads fit"
    else:
        words += f"it saves {format_money(best['saves_per_hour'] or 0.0, study.base.loaded.fabric.currency)}, and {best['load_gained']:.1%} more load fits"
    return QuestionResult(
        question="node_value", subject="every group", value=best["group"], unit="", proved=proved, sentence=words, rows=tuple(rows)
    )

"""The fewest nodes of a group that the loads still fit on."""

from __future__ import annotations

from functools import partial
from typing import Final

from planner.diagnostics import PlannerError
from planner.whatif.node_counts import names_of
from planner.whatif.patching import Base
from planner.whatif.questions import Question
from planner.whatif.questions.groups import Group, group_named
from planner.whatif.questions.threshold import least
from planner.whatif.results import QuestionResult, Solved
from planner.whatif.study import Study

MOST_NODES: Final = 20_000
# A group is enlarged at most so many times when it is too small as it is.
MOST_TIMES: Final = 64


def read(base: Base, asked: str) -> Question:
    """Read the name of a node group.

    Raises
    ------
    PlannerError
        UNKNOWN_PATH with the nearest.
    """
    return partial(_answer, group_named(base, asked))


def _answer(group: Group, study: Study) -> QuestionResult:
    doubts: list[int] = []

    def suffices(count: int) -> bool:
        answer = _solved(study, group, count)
        if answer is not None and answer.status == "unknown":
            doubts.append(count)
        return answer is not None and answer.found

    used = set(study.before.nodes) & set(names_of(group.name))
    guess = len(used) if used else group.nodes
    most = min(MOST_NODES, max(group.nodes, 1) * MOST_TIMES)
    count = least(suffices, guess, 0, most)
    if count is None:
        sentence = f"not even {most} {_nodes(most)} of {group.name} would do"
        return QuestionResult(question="smallest_fleet", subject=group.name, value=None, unit="nodes", proved=not doubts, sentence=sentence)
    answer = study.solved(group.change(count))
    row = {"nodes": count, "now": group.nodes, "cost_per_hour": answer.plan.cost_per_hour, "gpus": answer.plan.gpus}
    return QuestionResult(
        question="smallest_fleet",
        subject=group.name,
        value=count,
        unit="nodes",
        proved=not doubts,
        sentence=f"{count} {_nodes(count)} of {group.name} will do for the loads ({group.nodes} now)",
        rows=(row,),
    )


def _nodes(count: int) -> str:
    return "node" if count == 1 else "nodes"


def _solved(study: Study, group: Group, count: int) -> Solved | None:
    try:
        return study.solved(group.change(count))
    except PlannerError as error:
        # A topology without any node is no fleet at all.
        if {item.code for item in error.diagnostics} <= {"NO_NODES", "UNKNOWN_NODE"}:
            return None
        raise

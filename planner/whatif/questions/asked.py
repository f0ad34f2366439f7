"""All questions of one run: read together, so that everything wrong is told at once, and answered one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from planner.diagnostics import Diagnostic, PlannerError
from planner.whatif.patching import Base
from planner.whatif.questions import Question, buy, growth, max_load, node_value, smallest_fleet, worst_failure
from planner.whatif.scenario_file import QuestionPart


def read_questions(base: Base, asked: QuestionPart) -> list[Question]:
    """Questions of a scenario file or of options, ready to be answered.

    Raises
    ------
    PlannerError
        With everything that is wrong in any of them.
    """
    found: list[Question] = []
    faults: list[Diagnostic] = []
    for reader in _readers(base, asked):
        try:
            found.append(reader())
        except PlannerError as error:
            faults += error.diagnostics
    if faults:
        raise PlannerError(faults)
    return found


def _readers(base: Base, asked: QuestionPart) -> Iterator[Callable[[], Question]]:
    for name in asked.max_load:
        yield partial(max_load.read, base, name)
    for name in asked.smallest_fleet:
        yield partial(smallest_fleet.read, base, name)
    if asked.growth is not None:
        yield partial(growth.read, base, asked.growth)
    if asked.worst_failure is not None:
        yield partial(worst_failure.read, base, asked.worst_failure)
    if asked.buy:
        yield partial(buy.read, base, asked.buy)
    if asked.node_value:
        yield partial(node_value.read, base)

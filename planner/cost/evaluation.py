"""Times of many shapes at once, by the profile that the setting names."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from planner.cost.alike import alike
from planner.cost.calibrated import CalibratedTimes
from planner.cost.setting import IntArray, Setting, ShapeArrays, TimesTable
from planner.diagnostics import Diagnostic, PlannerError

PROFILES = ("calibrated", "hockney")
MOST_TOGETHER = 32  # settings asked at once: what is prepared for more of them takes memory and saves no time


class Times(Protocol):
    """Shapes of one setting, ready to be asked for their times at any batch.

    `alike` [n] numbers the shapes, with one number for those whose times are the same at every batch.
    """

    alike: IntArray

    def at(self, rows: IntArray, batch: IntArray, *, against_one: bool = True) -> TimesTable:
        """Times of some shapes, by their row and in any order and number, each at a batch of its own.

        Without `against_one` they need not be compared with one GPU at the same batch: `efficiency` and `latency_efficiency` may be NaN and `algorithm` empty,
        which is a quarter less work.
        """


class _TextbookTimes:
    """Times by the textbook profile, worked out anew at every batch."""

    def __init__(self, setting: Setting, shapes: ShapeArrays) -> None:
        self._setting, self._shapes = setting, shapes
        self.alike = alike(setting, shapes)[1]

    def at(self, rows: IntArray, batch: IntArray, *, against_one: bool = True) -> TimesTable:
        """Times of some shapes, all columns told."""
        from planner.cost.hockney import evaluate_hockney

        del against_one
        return evaluate_hockney(self._setting, replace(self._shapes.at(rows), batch=batch))


def prepared(setting: Setting, shapes: ShapeArrays) -> Times:
    """Make shapes ready to be asked for their times at many batches; their own batches do not count.

    Raises
    ------
    PlannerError
        UNKNOWN_PROFILE where the setting names no profile there is.
    """
    if setting.profile == "calibrated":
        return CalibratedTimes.of(setting, shapes)
    if setting.profile == "hockney":
        return _TextbookTimes(setting, shapes)
    raise PlannerError([Diagnostic("UNKNOWN_PROFILE", f"no profile is called {setting.profile!r}", f"write one of {', '.join(PROFILES)}")])


@dataclass(frozen=True)
class Together:
    """Times of several tables of shapes that are asked at once: `members` are their numbers, `first` the row at which each one's shapes begin."""

    times: Times
    members: tuple[int, ...]
    first: tuple[int, ...]


def together(parts: Sequence[Times]) -> list[Together]:
    """Join what can be asked at once: every call works on arrays, and few rows take as long as many. Each row has the times that it has alone."""
    sorts: dict[Hashable, list[int]] = {}
    for number, part in enumerate(parts):
        sort = part.sort if isinstance(part, CalibratedTimes) else None
        sorts.setdefault(("alone", number) if sort is None else sort, []).append(number)
    found = []
    for members in sorts.values():
        joinable = [part for number in members if isinstance(part := parts[number], CalibratedTimes)]
        if len(members) > 1:
            found.append(Together(CalibratedTimes.joined(joinable), tuple(members), tuple(CalibratedTimes.first_rows(joinable))))
        else:
            found.append(Together(parts[members[0]], tuple(members), (0,)))
    return found


def evaluate(setting: Setting, shapes: ShapeArrays) -> TimesTable:
    """Evaluate the times of every shape at its batch.

    Parameters
    ----------
    setting
        Model, precision, engine, GPU, paths, lengths, and the `profile`: "calibrated" (measured constants) or "hockney" (the textbook).
    shapes
        n shapes as columns.

    Raises
    ------
    PlannerError
        UNKNOWN_PROFILE for any other name.
    """
    return prepared(setting, shapes).at(np.arange(shapes.batch.size), shapes.batch)


def evaluate_all(questions: Sequence[tuple[Setting, ShapeArrays]]) -> list[TimesTable]:
    """Evaluate the shapes of many settings, each at its batch, as `evaluate` does of one; those that can be joined are asked together."""
    found: list[TimesTable | None] = [None] * len(questions)
    for start in range(0, len(questions), MOST_TOGETHER):
        some = questions[start : start + MOST_TOGETHER]
        for group in together([prepared(*question) for question in some]):
            batches = [some[member][1].batch for member in group.members]
            rows = [np.arange(batch.size) + first for batch, first in zip(batches, group.first, strict=True)]
            table, end = group.times.at(np.concatenate(rows), np.concatenate(batches)), 0
            for member, batch in zip(group.members, batches, strict=True):
                found[start + member] = table.at(slice(end, end + batch.size))
                end += batch.size
    return [table for table in found if table is not None]

"""Searches that ask for times row by row and batch by batch, many of them answered at once.

A search is a generator: it yields what it asks for and is sent the times. What searches about one model ask for in the same round is evaluated in one call where the times can be
joined (`cost.evaluation.together`), since few rows take nearly as long as many. What a search finds does not depend on those beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from planner.catalog.architecture import ModelArchitecture
from planner.cost.evaluation import MOST_TOGETHER, Times, Together, prepared, together
from planner.cost.setting import IntArray, Setting, ShapeArrays, TimesTable

Answer = TypeVar("Answer")


class Asked(NamedTuple):
    """Rows of a table at a batch each; `against_one` where they are to be compared with one GPU."""

    rows: IntArray
    batch: IntArray
    against_one: bool


Search = Generator[Asked, TimesTable, Answer]


class Searched(NamedTuple, Generic[Answer]):
    """Shapes of a setting, and the search among them: it is begun with a number for every shape [n], the same for shapes whose times are the same at every batch."""

    setting: Setting
    shapes: ShapeArrays
    search: Callable[[IntArray], Search[Answer]]


def answered(asked: Sequence[Searched[Answer]]) -> list[Answer]:
    """Run searches to their ends; what each of them returns, in their order."""
    models: dict[ModelArchitecture, list[int]] = {}
    for number, one in enumerate(asked):
        models.setdefault(one.setting.architecture, []).append(number)
    found: dict[int, Answer] = {}
    for numbers in models.values():
        for start in range(0, len(numbers), MOST_TOGETHER):
            _answer({number: asked[number] for number in numbers[start : start + MOST_TOGETHER]}, found)
    return [found[number] for number in range(len(asked))]


def _answer(asked: dict[int, Searched[Answer]], found: dict[int, Answer]) -> None:
    """Run searches about one model; shapes alike in every figure are prepared once."""
    places: dict[Hashable, int] = {}
    times: list[Times] = []
    using: list[list[int]] = []
    for number, one in asked.items():
        place = places.setdefault((one.setting, one.shapes.key), len(times))
        if place == len(times):
            times.append(prepared(one.setting, one.shapes))
            using.append([])
        using[place].append(number)
    for group in together(times):
        searches = {number: asked[number].search(times[member].alike) for member in group.members for number in using[member]}
        first = {number: start for member, start in zip(group.members, group.first, strict=True) for number in using[member]}
        _run(searches, first, group, found)


def _run(searches: dict[int, Search[Answer]], first: dict[int, int], group: Together, found: dict[int, Answer]) -> None:
    """Run searches in step; the rows of each begin at `first`."""
    waiting: dict[int, Asked] = {}

    def go_on(number: int, told: TimesTable | None) -> None:
        search = searches[number]
        try:
            waiting[number] = next(search) if told is None else search.send(told)
        except StopIteration as end:
            found[number] = end.value

    for number in searches:
        go_on(number, None)
    while waiting:
        # Comparing with one GPU is work of its own: those who do not ask for it are answered first and apart.
        compared = all(one.against_one for one in waiting.values())
        asking = [(number, one) for number, one in waiting.items() if one.against_one is compared]
        rows = np.concatenate([one.rows + first[number] for number, one in asking])
        table = group.times.at(rows, np.concatenate([one.batch for _, one in asking]), against_one=compared)
        start = 0
        for number, one in asking:
            del waiting[number]
            go_on(number, table.at(slice(start, start + one.rows.size)))
            start += one.rows.size

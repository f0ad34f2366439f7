"""Menus from memory: what has been evaluated once is not evaluated again for a scenario that does not change it.

Layouts of one deployment on one pool depend on the model, the setting (lengths, precision, engine, paths), the targets and the load's kind;
their memory does not depend on the targets, and a price only scales a shape's own. Entries are found by all they depend on, so an answer never
depends on what was asked before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import fields, replace
from typing import Any, Final, Generic, TypeVar

import numpy as np

from planner.candidates.columns import Evaluated, Found, Query, Question, evaluate_tables, layout_tables, most_sequences
from planner.candidates.degrees import Layout
from planner.candidates.settings import PoolSetting
from planner.plan.shape import Rejection, Shape

Held = TypeVar("Held")

# A menu of a thousand shapes takes about a megabyte.
MOST_ENTRIES: Final = 256
_LEVELS: Final = ("tp_level", "stage_level", "stage_scopes", "replica_level", "group_level", "groups", "group_size")
_BY_NAME: Final = {"architecture", "gpu"}


def _grid_key(grid: Sequence[Layout]) -> bytes:
    """All numbers of the layouts, in order; bytes are hashed once and compared at once."""
    rows = [(*_degrees(layout), *(getattr(layout, name) for name in _LEVELS)) for layout in grid]
    return np.array(rows, dtype=np.int64).tobytes()


def _degrees(layout: Layout) -> tuple[int, int, int, int]:
    degrees = layout.degrees
    return (degrees.tensor_parallel, degrees.pipeline_parallel, degrees.expert_parallel, degrees.data_parallel)


class Recent(Generic[Held]):
    """The entries used last, at most `most`."""

    def __init__(self, most: int = MOST_ENTRIES) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, Held] = OrderedDict()

    def get(self, key: Hashable) -> Held | None:
        """Entry under `key`, now the most recent; None where there is none."""
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Hashable, value: Held) -> Held:
        """Keep `value` under `key`."""
        self._entries[key] = value
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return value


class MenuMemory:
    """Evaluates layouts for `build_menu`, from memory where nothing that matters has changed; `reused` and `evaluated` count its answers."""

    def __init__(self) -> None:
        self._tables: Recent[Evaluated] = Recent()
        self._menus: Recent[Found] = Recent()
        self._identities: dict[int, tuple[Any, str]] = {}
        self.reused = 0
        self.evaluated = 0

    def evaluate(self, questions: Sequence[Question]) -> list[Found]:
        """Shapes and rejections of every question, as `evaluate_layouts` would give them."""
        asked = [question for question in questions if question.grid]
        known: dict[Hashable, Found] = {}
        missing: dict[Hashable, Query] = {}
        keys: list[Hashable] = []
        for question, (setting, table) in zip(asked, self._tables_of(asked), strict=True):
            context = question.context
            most = most_sequences(context, table)
            key: Hashable = (setting, most.tobytes(), context.targets, context.concurrency is None, question.every_batch)
            keys.append(key)
            found = known.get(key) or self._menus.get(key)
            if found is not None:
                known[key] = found
            if found is not None or key in missing:
                self.reused += 1
            else:
                self.evaluated += 1
                missing[key] = Query(context, table, most, question.price_per_gpu, question.every_batch)
        for key, evaluated in zip(missing, evaluate_tables([*missing.values()]), strict=True):
            known[key] = self._menus.put(key, evaluated)
        remaining = iter(keys)
        return [self._told(question, known[next(remaining)]) if question.grid else ([], []) for question in questions]

    def _tables_of(self, questions: Sequence[Question]) -> list[tuple[Hashable, Evaluated]]:
        """Layouts of every question with their memory, by all that it depends on."""
        keys = [(*self._setting_key(question.context), _grid_key(question.grid)) for question in questions]
        tables = {key: table for key in keys if (table := self._tables.get(key)) is not None}
        missing = {key: question for key, question in zip(keys, questions, strict=True) if key not in tables}
        for key, table in zip(missing, layout_tables([question[:2] for question in missing.values()]), strict=True):
            tables[key] = self._tables.put(key, table)
        return [(key, tables[key]) for key in keys]

    def _told(self, question: Question, found: Found) -> Found:
        """What was found of the same layouts, as shapes and rejections of this question."""
        context, price = question.context, question.price_per_gpu
        return [self._priced(shape, context, price) for shape in found[0]], [self._placed(item, context) for item in found[1]]

    def _setting_key(self, context: PoolSetting) -> tuple[Hashable, ...]:
        """All that the memory and the times of a layout depend on."""
        setting = context.setting
        plain = tuple(getattr(setting, field.name) for field in fields(setting) if field.name not in _BY_NAME)
        return (
            repr(plain),
            self._identity(setting.architecture),
            self._identity(setting.gpu),
            context.pool.levels,
            context.sequences_per_rank,
        )

    def _identity(self, thing: Any) -> str:
        """Contents of a large frozen object as text, worked out once for each object."""
        known = self._identities.get(id(thing))
        if known is None or known[0] is not thing:
            if len(self._identities) > MOST_ENTRIES:
                self._identities.clear()
            known = self._identities[id(thing)] = (thing, repr(thing))
        return known[1]

    @staticmethod
    def _priced(shape: Shape, context: PoolSetting, price_per_gpu: float | None) -> Shape:
        price = (price_per_gpu or 0.0) * shape.degrees.gpus
        if shape.price == price and shape.deployment == context.deployment and shape.pool == context.pool.index:
            return shape
        return replace(shape, price=price, deployment=context.deployment, pool=context.pool.index)

    @staticmethod
    def _placed(refused: Rejection, context: PoolSetting) -> Rejection:
        if refused.deployment == context.deployment and refused.pool == context.pool.index:
            return refused
        return replace(refused, deployment=context.deployment, pool=context.pool.index)

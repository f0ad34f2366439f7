"""Shapes that one answer has evaluated already, for the questions that follow from it: with more room, or with another target of one deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.candidates.buckets import Evaluator
from planner.candidates.columns import evaluate_layouts
from planner.candidates.degrees import Layout
from planner.candidates.settings import PoolSetting
from planner.plan.shape import Rejection, Shape

Found = tuple[list[Shape], list[Rejection]]
Key = tuple[object, ...]


@dataclass
class Remembered:
    """An evaluator for `build_menu` that evaluates only the layouts it has not seen for the same question.

    It holds for one problem: settings differ in nothing but deployment, pool, precision, lengths and targets there.
    """

    evaluator: Evaluator = evaluate_layouts
    known: dict[Key, tuple[frozenset[Layout], Found]] = field(default_factory=dict)

    def evaluate(self, context: PoolSetting, grid: Sequence[Layout], price_per_gpu: float | None, every_batch: bool) -> Found:
        """Shapes and rejections of `grid`; those of layouts seen before come first."""
        setting = context.setting
        key = (
            context.deployment,
            context.pool.index,
            setting.precision,
            setting.prompt_tokens,
            setting.output_tokens,
            context.targets,
            context.concurrency,
            price_per_gpu,
            every_batch,
        )
        seen, found = self.known.get(key, (frozenset(), ([], [])))
        if not seen.issubset(grid):
            seen, found = frozenset(), ([], [])
        missing = [layout for layout in grid if layout not in seen]
        if missing:
            shapes, refused = self.evaluator(context, missing, price_per_gpu, every_batch)
            found = ([*found[0], *shapes], [*found[1], *refused])
            self.known[key] = (frozenset(grid), found)
        return list(found[0]), list(found[1])

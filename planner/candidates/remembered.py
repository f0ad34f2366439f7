"""Shapes that one answer has evaluated already, for the questions that follow from it: with more room, or with another target of one deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.candidates.buckets import Evaluator
from planner.candidates.columns import Found, Question, evaluate_layouts
from planner.candidates.degrees import Layout

Key = tuple[object, ...]


@dataclass
class Remembered:
    """An evaluator for `build_menu` that evaluates only the layouts it has not seen for the same question.

    It holds for one problem: settings differ in nothing but deployment, pool, precision, lengths and targets there.
    """

    evaluator: Evaluator = evaluate_layouts
    known: dict[Key, tuple[frozenset[Layout], Found]] = field(default_factory=dict)

    def evaluate(self, questions: Sequence[Question]) -> list[Found]:
        """Shapes and rejections of every question; those of layouts seen before come first."""
        before = [self._before(question) for question in questions]
        asked = [
            (number, question._replace(grid=missing))
            for number, (question, (seen, _)) in enumerate(zip(questions, before, strict=True))
            if (missing := [layout for layout in question.grid if layout not in seen])
        ]
        found = [answer for _, answer in before]
        for (number, _), (shapes, refused) in zip(asked, self.evaluator([question for _, question in asked]), strict=True):
            found[number] = ([*found[number][0], *shapes], [*found[number][1], *refused])
            self.known[_key(questions[number])] = (frozenset(questions[number].grid), found[number])
        return [(list(shapes), list(refused)) for shapes, refused in found]

    def _before(self, question: Question) -> tuple[frozenset[Layout], Found]:
        """Layouts of the question that were evaluated before, and what came of them."""
        seen, found = self.known.get(_key(question), (frozenset(), ([], [])))
        return (seen, found) if seen.issubset(question.grid) else (frozenset(), ([], []))


def _key(question: Question) -> Key:
    """Everything but the layouts that tells two questions of a problem apart."""
    context, setting = question.context, question.context.setting
    return (
        context.deployment,
        context.pool.index,
        setting.precision,
        setting.prompt_tokens,
        setting.output_tokens,
        context.targets,
        context.concurrency,
        question.price_per_gpu,
        question.every_batch,
    )

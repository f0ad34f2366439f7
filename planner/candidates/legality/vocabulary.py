"""The vocabulary is padded and then cut: padded vocabulary % t == 0."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import LARGEST_HINTED, Question, degrees_that, divisors, finding
from planner.cost.tensors import padded_vocabulary
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report a padded vocabulary that t does not divide."""
    t, vocabulary = degrees.tensor_parallel, question.architecture.vocab_size
    padded = padded_vocabulary(vocabulary, question.engine.vocabulary_padding)
    if padded % t:
        words = f"vocabulary {vocabulary}" if padded == vocabulary else f"vocabulary {vocabulary}, padded to {padded},"
        message = f"{words} / TP {t} leaves {padded % t} over"
        hint = degrees_that(divisors(padded, LARGEST_HINTED))
        yield from finding(question.engine.rule("vocabulary"), "VOCAB_NOT_DIVISIBLE", message, hint)

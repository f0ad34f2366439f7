"""QUESTIONS BY NAME: how much load fits, the smallest fleet, when it runs out, which failure hurts, what to buy, what a node is worth.

One file a question. Each begins by reading what is asked, so that whatever is wrong is told before anything is solved; the figure is confirmed by
solving the problem on both sides of it.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.whatif.results import QuestionResult
from planner.whatif.study import Study

Question = Callable[[Study], QuestionResult]
"""A question that has been read and may be answered."""

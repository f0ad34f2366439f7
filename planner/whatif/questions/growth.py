"""When the fleet runs out: all loads grow at a steady rate until nothing fits any more."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import partial
from typing import Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.whatif.patching import Base
from planner.whatif.questions import Question
from planner.whatif.questions.max_load import most_factor
from planner.whatif.questions.served import greatest_share
from planner.whatif.questions.threshold import greatest
from planner.whatif.results import QuestionResult
from planner.whatif.scenarios import Change
from planner.whatif.study import Study

_TEXT: Final = re.compile(r"\+?([0-9]+(?:\.[0-9]+)?)\s*%\s*/\s*(week|month|quarter|year)")
MOST_ROWS: Final = 24


def read(base: Base, asked: str) -> Question:
    """Read `5%/month` (or week, quarter, year).

    Raises
    ------
    PlannerError
        GROWTH_NOT_UNDERSTOOD.
    """
    del base
    found = _TEXT.fullmatch(asked.strip())
    if found is None or not 0 < Fraction(found[1]) <= 1000:
        message = f"`{asked[:60]}` is no rate of growth"
        raise PlannerError([Diagnostic("GROWTH_NOT_UNDERSTOOD", message, "write for example 5%/month", place=Place("--growth"))])
    return partial(_answer, Fraction(found[1]) / 100, found[2])


def _answer(rate: Fraction, period: str, study: Study) -> QuestionResult:
    share, _ = greatest_share(study, study.base.loaded)
    growth = math.log(float(1 + rate))
    guess = math.floor(math.log(share) / growth + 1e-9) if share > 0 else 0
    most = math.floor(math.log(most_factor(study.base)) / growth)
    doubts: list[int] = []

    def fits(periods: int) -> bool:
        answer = study.solved(*_change(rate, periods))
        if answer.status == "unknown":
            doubts.append(periods)
        return answer.found

    last = greatest(fits, guess, 0, max(most, 0))
    subject = f"{float(rate):.4g} a {period}".replace(f"{float(rate):.4g}", f"{float(rate) * 100:.4g} %")
    if last is None:
        sentence = "the loads do not fit the fleet as they are"
        return QuestionResult(
            question="growth", subject=subject, value=None, unit=f"{period}s", proved=not doubts, sentence=sentence, rows=()
        )
    apart = max(1, math.ceil((last + 2) / MOST_ROWS))
    shown = sorted({*range(0, last + 1, apart), last, last + 1})
    rows = []
    for periods in shown:
        answer = study.solved(*_change(rate, periods)) if periods <= most else None
        if answer is not None:
            factor = float((1 + rate) ** periods)
            figures = {"cost_per_hour": answer.plan.cost_per_hour, "gpus": answer.plan.gpus if answer.found else None}
            rows.append({period: periods, "load": round(factor, 4), "status": answer.status, **figures})
    sentence = f"at {subject} the fleet carries the loads for {last} {period}s and runs out in the next one"
    return QuestionResult(
        question="growth", subject=subject, value=last, unit=f"{period}s", proved=not doubts, sentence=sentence, rows=tuple(rows)
    )


def _change(rate: Fraction, periods: int) -> tuple[Change, ...]:
    """All loads after some periods; none where nothing has grown yet."""
    return () if periods == 0 else (Change("load", f"x{float((1 + rate) ** periods):.9f}"),)

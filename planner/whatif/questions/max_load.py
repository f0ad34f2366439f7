"""How much load fits: the greatest concurrency or request rate of one deployment beside the others, or the greatest factor on all loads."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Final

from planner.candidates.menu import TOKENS, load_of
from planner.catalog.nearest import nearest
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.problem.documents import Deployment
from planner.problem.workload import MOST_SEQUENCES
from planner.whatif.patching import Base
from planner.whatif.questions import Question
from planner.whatif.questions.served import greatest_load, greatest_share
from planner.whatif.questions.threshold import greatest
from planner.whatif.results import QuestionResult
from planner.whatif.scenarios import Change
from planner.whatif.study import Study

ALL: Final = "all"
# Steps of a factor on all loads.
FACTOR_STEPS: Final = 1000
RATE_DIGITS: Final = 4


def read(base: Base, asked: str) -> Question:
    """Read a deployment's name, or `all`.

    Raises
    ------
    PlannerError
        UNKNOWN_DEPLOYMENT with the nearest names.
    """
    names = [deployment.name for deployment in base.loaded.problem.deployments]
    if asked == ALL and ALL not in names:
        return _all_loads
    if asked not in names:
        close = nearest(asked, names, limit=3) or names[:5]
        message = f"there is no deployment `{asked[:100]}`"
        hint = f"nearest: {', '.join(close)}; `all` scales all loads together"
        raise PlannerError([Diagnostic("UNKNOWN_DEPLOYMENT", message, hint, place=Place("--max-load"))])
    return partial(_one_load, names.index(asked))


def _one_load(index: int, study: Study) -> QuestionResult:
    """Greatest load of one deployment while the others keep theirs."""
    loaded = study.base.loaded
    deployment = loaded.problem.deployments[index]
    steps = rate_steps(deployment)
    unit = load_of(loaded, index)[1]
    guess = greatest_load(study, loaded, index)
    per_step = (deployment.workload.output_tokens if unit == TOKENS else 1) * (1.0 + deployment.headroom) / steps
    doubts: list[int] = []

    def fits(number: int) -> bool:
        answer = study.solved(_change(deployment, number, steps))
        if answer.status == "unknown":
            doubts.append(number)
        return answer.found

    number = greatest(fits, math.floor(guess / per_step * (1 + 1e-12)), 1, MOST_SEQUENCES * steps)
    name = deployment.name
    words = "concurrent sequences" if steps == 1 else "requests/s"
    if number is None:
        return QuestionResult(
            question="max_load",
            subject=name,
            value=0,
            unit=words,
            proved=not doubts,
            sentence=f"{name}: no load fits beside the other deployments",
        )
    value = number if steps == 1 else number / steps
    now = deployment.workload.concurrency if steps == 1 else deployment.workload.request_rate
    answer = study.solved(_change(deployment, number, steps))
    row = {"load": value, "unit": words, "now": now, "cost_per_hour": answer.plan.cost_per_hour, "gpus": answer.plan.gpus}
    return QuestionResult(
        question="max_load",
        subject=name,
        value=value,
        unit=words,
        proved=not doubts,
        sentence=f"{name}: up to {value:,.10g} {words} fit beside the other deployments ({now:,.10g} now)",
        rows=(row,),
    )


def rate_steps(deployment: Deployment) -> int:
    """Steps of one unit of load: sequences are whole, a rate is told to four digits of what it is now."""
    rate = deployment.workload.request_rate
    return 1 if rate is None else 10 ** max(0, RATE_DIGITS - 1 - math.floor(math.log10(rate)))


def _change(deployment: Deployment, number: int, steps: int) -> Change:
    path = f"deployments.{deployment.name}.workload"
    if deployment.workload.concurrency is not None:
        return Change(f"{path}.concurrency", str(number))
    return Change(f"{path}.request_rate", f"{decimal(Fraction(number, steps))}/s")


def decimal(value: Fraction) -> str:
    """A fraction whose denominator is a power of ten, written out."""
    return f"{float(value):.12f}".rstrip("0").rstrip(".")


def factor_change(number: int) -> Change:
    """All loads times `number` thousandths."""
    return Change("load", f"x{decimal(Fraction(number, FACTOR_STEPS))}")


def _all_loads(study: Study) -> QuestionResult:
    """Greatest factor on all loads."""
    share, _ = greatest_share(study, study.base.loaded)
    doubts: list[int] = []

    def fits(number: int) -> bool:
        answer = study.solved(factor_change(number))
        if answer.status == "unknown":
            doubts.append(number)
        return answer.found

    number = greatest(fits, math.floor(share * FACTOR_STEPS), 1, most_factor(study.base) * FACTOR_STEPS)
    value = 0.0 if number is None else number / FACTOR_STEPS
    sentence = f"all loads together may grow to {value:g} times what is asked" if value >= 1 else f"only {value:.1%} of all loads fits"
    rows = []
    if number is not None:
        answer = study.solved(factor_change(number))
        rows = [{"factor": value, "cost_per_hour": answer.plan.cost_per_hour, "gpus": answer.plan.gpus}]
    return QuestionResult(
        question="max_load", subject=ALL, value=value, unit="of all loads", proved=not doubts, sentence=sentence, rows=tuple(rows)
    )


def most_factor(base: Base) -> int:
    """Factor beyond which a problem may not ask."""
    loads = [item.workload.concurrency or item.workload.request_rate or 1.0 for item in base.loaded.problem.deployments]
    return max(1, math.floor(MOST_SEQUENCES / max(loads)))

"""Why there is no plan and what would help: room to make, load to drop, money, rules to loosen, and targets that could be met."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.candidates.buckets import Evaluator
from planner.candidates.columns import evaluate_layouts
from planner.candidates.degrees import room_to_be
from planner.candidates.menu import Menu, build_menu
from planner.diagnostics import Diagnostic, Severity
from planner.plan.shape import Degrees, Shape
from planner.problem.documents import Deployment
from planner.problem.load import LoadedProblem

if TYPE_CHECKING:
    from planner.solve.options import SolveOptions
    from planner.solve.work import Work

NEAR = 1.01
"""Ratio of a target that could be met to one that could not, at which the search for the least one ends."""

MOST_ASKED = 6
"""Deployments whose targets are tried to loosen."""

MOST_NAMED = 4
"""Deployments that one sentence names."""

WORDS = {"tpot": ("TPOT_MISSED", "a token"), "ttft": ("TTFT_MISSED", "to the first token")}


def what_would_help(
    loaded: LoadedProblem,
    menu: Menu,
    force: Degrees | None,
    options: SolveOptions,
    evaluator: Evaluator = evaluate_layouts,
    *,
    targets: bool = True,
) -> tuple[Diagnostic, ...]:
    """Smallest changes that would each make a plan possible.

    Shapes that need more room than is free are thought of too, so that a group of 8 in nodes with 6 free is told which GPUs to free. All questions share
    one allowance of work; what it does not suffice for is named. `targets` also asks which targets could be met; without them the allowance is a short one.
    """
    from planner.solve.answer import smallest_repairs
    from planner.solve.work import SHORT, WHOLE, allowance

    wide = build_menu(loaded, force=force, evaluator=evaluator, room_of=room_to_be)
    work = allowance(options.time_limit, WHOLE if targets else SHORT)
    repairs = smallest_repairs(loaded.problem, loaded.fabric, wide.shapes, wide.loads, options, work)
    asked = _Asked(loaded, menu, force, options, work, evaluator)
    met = tuple(_targets(asked)) if targets and loaded.problem.objective != "throughput" else ()
    # Where a target helps, no other single change has to.
    return (*(item for item in repairs if item.code != "NO_SINGLE_REPAIR" or not met), *met)


@dataclass(frozen=True)
class _Asked:
    """The problem with its menu, and how to ask about changes of it."""

    loaded: LoadedProblem
    menu: Menu
    force: Degrees | None
    options: SolveOptions
    work: Work
    evaluator: Evaluator


def _targets(asked: _Asked) -> Iterator[Diagnostic]:
    """Targets of one deployment that could be met if it asked no more than that; at the end, whose targets were not looked at."""
    from planner.solve.answer import alone_in_the_way
    from planner.solve.no_plan import not_examined

    loaded, menu = asked.loaded, asked.menu
    every = loaded.problem.deployments
    having = [number for number, deployment in enumerate(every) if _has_targets(deployment)]
    if not having:
        return
    alone = alone_in_the_way(loaded.problem, loaded.fabric, menu.shapes, menu.loads, asked.options, asked.work)
    left = [number for number in having if number in alone]
    names = [every[number].name for number in left[MOST_ASKED:]]
    for index in left[:MOST_ASKED]:
        met = tuple(_targets_of(_Relaxed(asked, index), every[index])) if not asked.work.over else ()
        yield from met
        if not met and asked.work.over:
            names.append(every[index].name)
    if names:
        shown = ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
        yield not_examined([f"other targets of {shown} would do"])


def _has_targets(deployment: Deployment) -> bool:
    slo = deployment.slo
    return bool(deployment.min_efficiency) or (slo is not None and (slo.tpot is not None or slo.ttft is not None))


def _targets_of(shapes: _Relaxed, deployment: Deployment) -> Iterator[Diagnostic]:
    slo = deployment.slo
    for name in ("tpot", "ttft"):
        asked = None if slo is None else getattr(slo, name)
        if asked is None:
            continue

        def with_time(time: float, name: str = name) -> Deployment:
            assert deployment.slo is not None
            return deployment.model_copy(update={"slo": deployment.slo.model_copy(update={name: time})})

        least = _least_time(shapes, with_time, asked, name)
        if least is not None:
            code, unit = WORDS[name]
            message = f"{deployment.name} cannot be served within {_written(asked)} {unit}, {least} could be met{shapes.cut}"
            yield Diagnostic(code, message, f"write `slo: {{{name}: {least}}}`", Severity.WARNING)
    if deployment.min_efficiency:
        share = _most_efficient(shapes, deployment)
        if share is not None:
            message = (
                f"{deployment.name} cannot be served at an efficiency of {deployment.min_efficiency:.0%}, {share} could be met{shapes.cut}"
            )
            yield Diagnostic("EFFICIENCY_TOO_LOW", message, f"write `min_efficiency: {share}`", Severity.WARNING)


class _Relaxed:
    """Shapes of a problem when one deployment asks something else; the others keep theirs."""

    def __init__(self, asked: _Asked, index: int) -> None:
        self.asked, self.index = asked, index
        self.others = tuple(shape for shape in asked.menu.shapes if shape.deployment != index)

    @property
    def cut(self) -> str:
        """What to say of the nearest target found where the work ended before nearer ones were ruled out."""
        return "; nearer ones were not ruled out" if self.asked.work.over else ""

    def shapes(self, changed: Deployment) -> tuple[Shape, ...]:
        """Shapes of the deployment as it is changed."""
        from planner.solve.work import PER_REFUSAL, PER_SHAPE

        menu = build_menu(self._with(changed), force=self.asked.force, evaluator=self.asked.evaluator, only=(self.index,))
        self.asked.work.spend(PER_SHAPE * len(menu.shapes) + PER_REFUSAL * len(menu.rejected))
        return menu.shapes

    def possible(self, changed: Deployment, shapes: tuple[Shape, ...] | None = None) -> bool:
        """Whether there is a plan when the deployment is changed; `shapes` where they are known already."""
        from planner.solve.answer import has_plan

        if self.asked.work.over:
            return False
        loaded = self._with(changed)
        mine = self.shapes(changed) if shapes is None else shapes
        loads = self.asked.menu.loads
        return bool(mine) and has_plan(loaded.problem, loaded.fabric, (*self.others, *mine), loads, self.asked.options, self.asked.work)

    def _with(self, changed: Deployment) -> LoadedProblem:
        deployments = list(self.asked.loaded.problem.deployments)
        deployments[self.index] = changed
        return replace(self.asked.loaded, problem=self.asked.loaded.problem.model_copy(update={"deployments": tuple(deployments)}))


def _least_time(shapes: _Relaxed, with_time: Callable[[float], Deployment], asked: float, name: str) -> str | None:
    """Shortest time, to about a per cent, within which there is a plan, as it is written; None where no time is long enough."""
    without = with_time(math.inf)
    slowest = shapes.shapes(without)
    times = [getattr(shape.times if shape.tail is None else shape.tail, name) for shape in slowest]
    high = max(times, default=0.0) * NEAR
    # Without a target every shape has the batch that it has under one that all meet.
    if high <= asked or not shapes.possible(with_time(high), slowest):
        return None
    low = asked
    while high / low > NEAR:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if shapes.possible(with_time(middle)) else (middle, high)
    return _written(high)


def _written(seconds: float) -> str:
    """A time as a problem file has it, rounded up to three figures."""
    scale, unit = (1.0, "s") if seconds >= 1.0 else (1e3, "ms")
    amount = seconds * scale
    step = 10.0 ** (math.floor(math.log10(amount)) - 2)
    return f"{math.ceil(round(amount / step, 6)) * step:g}{unit}"


def _most_efficient(shapes: _Relaxed, deployment: Deployment) -> str | None:
    """Largest efficiency in whole per cent with which there is a plan; None where there is none without."""

    def holds(percent: int) -> bool:
        return shapes.possible(deployment.model_copy(update={"min_efficiency": percent / 100 or None}))

    low, high = 0, math.ceil(round(100 * (deployment.min_efficiency or 0.0), 6))
    if not holds(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return f"{low}%"

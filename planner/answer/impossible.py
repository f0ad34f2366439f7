"""Why there is no plan and what would help: room to make, load to drop, money, rules to loosen, and targets that could be met."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.candidates.degrees import room_to_be
from planner.candidates.menu import Menu, build_menu
from planner.diagnostics import Diagnostic, Severity
from planner.plan.shape import Degrees, Shape
from planner.problem.documents import Deployment
from planner.problem.load import LoadedProblem

if TYPE_CHECKING:
    from planner.solve.options import SolveOptions

NEAR = 1.01
"""Ratio of a target that could be met to one that could not, at which the search for the least one ends."""

MOST_ASKED = 6
"""Deployments whose targets are tried to loosen."""

WORDS = {"tpot": ("TPOT_MISSED", "a token"), "ttft": ("TTFT_MISSED", "to the first token")}


def what_would_help(loaded: LoadedProblem, menu: Menu, force: Degrees | None, options: SolveOptions) -> tuple[Diagnostic, ...]:
    """Smallest changes that would each make a plan possible.

    Shapes that need more room than is free are thought of too, so that a group of 8 in nodes with 6 free is told which GPUs to free.
    """
    from planner.solve.answer import smallest_repairs

    wide = build_menu(loaded, force=force, room_of=room_to_be)
    repairs = smallest_repairs(loaded.problem, loaded.fabric, wide.shapes, wide.loads, options)
    targets = () if loaded.problem.objective == "throughput" else tuple(_targets(loaded, menu, force, options))
    # Where a target helps, no other single change has to.
    return (*(item for item in repairs if item.code != "NO_SINGLE_REPAIR" or not targets), *targets)


def _targets(loaded: LoadedProblem, menu: Menu, force: Degrees | None, options: SolveOptions) -> Iterator[Diagnostic]:
    """Targets of one deployment that could be met if it asked no more than that."""
    for index, deployment in enumerate(loaded.problem.deployments[:MOST_ASKED]):
        shapes = _Relaxed(loaded, menu, force, options, index)
        slo = deployment.slo
        for name in ("tpot", "ttft"):
            asked = None if slo is None else getattr(slo, name)
            if asked is None:
                continue

            def with_time(time: float, deployment: Deployment = deployment, name: str = name) -> Deployment:
                assert deployment.slo is not None
                return deployment.model_copy(update={"slo": deployment.slo.model_copy(update={name: time})})

            least = _least_time(shapes, with_time, asked, name)
            if least is not None:
                code, unit = WORDS[name]
                message = f"{deployment.name} cannot be served within {_written(asked)} {unit}, {least} could be met"
                yield Diagnostic(code, message, f"write `slo: {{{name}: {least}}}`", Severity.WARNING)
        if deployment.min_efficiency:
            share = _most_efficient(shapes, deployment)
            if share is not None:
                message = f"{deployment.name} cannot be served at an efficiency of {deployment.min_efficiency:.0%}, {share} could be met"
                yield Diagnostic("EFFICIENCY_TOO_LOW", message, f"write `min_efficiency: {share}`", Severity.WARNING)


class _Relaxed:
    """Shapes of a problem when one deployment asks something else; the others keep theirs."""

    def __init__(self, loaded: LoadedProblem, menu: Menu, force: Degrees | None, options: SolveOptions, index: int) -> None:
        self.loaded, self.force, self.options, self.index = loaded, force, options, index
        self.others = tuple(shape for shape in menu.shapes if shape.deployment != index)

    def shapes(self, changed: Deployment) -> tuple[Shape, ...]:
        """Shapes of the deployment as it is changed."""
        return build_menu(self._with(changed), force=self.force, only=(self.index,)).shapes

    def possible(self, changed: Deployment) -> bool:
        """Whether there is a plan when the deployment is changed."""
        from planner.solve.answer import has_plan

        asked = self._with(changed)
        menu = build_menu(asked, force=self.force, only=(self.index,))
        return bool(menu.shapes) and has_plan(asked.problem, asked.fabric, (*self.others, *menu.shapes), menu.loads, self.options)

    def _with(self, changed: Deployment) -> LoadedProblem:
        deployments = list(self.loaded.problem.deployments)
        deployments[self.index] = changed
        return replace(self.loaded, problem=self.loaded.problem.model_copy(update={"deployments": tuple(deployments)}))


def _least_time(shapes: _Relaxed, with_time: Callable[[float], Deployment], asked: float, name: str) -> str | None:
    """Shortest time, to about a per cent, within which there is a plan, as it is written; None where no time is long enough."""
    without = with_time(math.inf)
    times = [getattr(shape.times if shape.tail is None else shape.tail, name) for shape in shapes.shapes(without)]
    high = max(times, default=0.0) * NEAR
    if high <= asked or not shapes.possible(with_time(high)):
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

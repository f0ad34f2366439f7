"""What may be moved on the page, within which bounds, and the changes of the problem that the moved values stand for.

Nothing else of a request is ever looked at: a value that belongs to no control, or lies outside its bounds, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.whatif.patching import Base
from planner.whatif.questions.groups import groups_of
from planner.whatif.scenarios import Change

MOST_TIMES: Final = 8.0
"""How far a figure may be moved, as a multiple of what the problem asks."""

MOST_NODES: Final = 256
"""Nodes that may be made to fail one by one; in larger fleets only leaves may."""

LOSE: Final = "lose"


@dataclass(frozen=True)
class Slider:
    """One number: the path it changes, its label and unit, its value in the problem, bounds and step; `suffix` ends the text of the change."""

    path: str
    label: str
    unit: str
    value: float
    low: float
    high: float
    step: float
    suffix: str = ""

    def text(self, value: float) -> str:
        """Text of the change to a value."""
        number = f"{round(value)}" if float(self.step).is_integer() else f"{value:.6g}"
        return f"{value:+.6g}%" if self.path == "prices" else f"{number}{self.suffix}"


@dataclass(frozen=True)
class Controls:
    """Sliders by heading, and the names of what may fail."""

    sliders: tuple[tuple[str, tuple[Slider, ...]], ...]
    failures: tuple[str, ...]

    def changes(self, asked: object) -> tuple[Change, ...]:
        """Changes that a request asks for; values that are the problem's own change nothing.

        Raises
        ------
        PlannerError
            UI_REQUEST_INVALID with every name, value or failure that is none of the page's.
        """
        if not isinstance(asked, dict) or not set(asked) <= {"values", LOSE}:
            raise PlannerError([_invalid("the request", "send {values: {path: number}, lose: [name]}")])
        values, lost = asked.get("values", {}), asked.get(LOSE, [])
        if not isinstance(values, dict) or not isinstance(lost, list):
            raise PlannerError([_invalid("the request", "send {values: {path: number}, lose: [name]}")])
        faults: list[Diagnostic] = []
        found: list[Change] = []
        sliders = {slider.path: slider for _, group in self.sliders for slider in group}
        for path, value in values.items():
            slider = sliders.get(path)
            if slider is None:
                faults.append(_invalid(str(path)[:80], "move what the page shows"))
            elif not _number(value) or not slider.low <= float(value) <= slider.high:
                faults.append(_invalid(slider.path, f"give a number from {slider.low:g} to {slider.high:g}"))
            elif not math.isclose(float(value), slider.value, rel_tol=1e-9, abs_tol=1e-12):
                found.append(Change(slider.path, slider.text(float(value))))
        known = set(self.failures)
        for name in lost:
            if isinstance(name, str) and name in known:
                found.append(Change(LOSE, name))
            else:
                faults.append(_invalid(f"lose {str(name)[:80]}", "name a node or leaf that the page shows"))
        if faults:
            raise PlannerError(faults)
        return tuple(dict.fromkeys(found))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _invalid(what: str, hint: str) -> Diagnostic:
    return Diagnostic("UI_REQUEST_INVALID", f"{what} cannot be taken", hint, place=Place(path=what))


def controls_of(base: Base) -> Controls:
    """Everything of a problem that the page lets move."""
    groups: list[tuple[str, tuple[Slider, ...]]] = []
    for deployment in base.loaded.problem.deployments:
        path = f"deployments.{deployment.name}"
        sliders: list[Slider] = []
        workload = deployment.workload
        if workload.concurrency is not None:
            most = max(16.0, round(MOST_TIMES * workload.concurrency))
            sliders.append(Slider(f"{path}.workload.concurrency", "load", "sequences at once", workload.concurrency, 1, most, 1))
        elif workload.request_rate is not None:
            rate = workload.request_rate
            sliders.append(
                Slider(f"{path}.workload.request_rate", "load", "requests/s", rate, rate / 100, MOST_TIMES * rate, rate / 100, "/s")
            )
        if deployment.slo is not None:
            for name, label, seconds in (("tpot", "time per token", deployment.slo.tpot), ("ttft", "first token", deployment.slo.ttft)):
                if seconds is not None:
                    asked = round(seconds * 1e3, 6)
                    sliders.append(
                        Slider(f"{path}.slo.{name}", label, "ms at most", asked, asked / 10, min(asked * 4, 3.6e6), asked / 100, "ms")
                    )
        if sliders:
            groups.append((deployment.name, tuple(sliders)))
    counts = [
        Slider(
            f"{group.path}.count", group.name, "nodes" if group.path.startswith("nodes") else "units", group.nodes, 0, _most(group.nodes), 1
        )
        for group in groups_of(base)
        if group.nodes is not None
    ]
    prices = Slider("prices", "all prices", "% more", 0.0, -90.0, 200.0, 5.0)
    groups.append(("fleet", (*counts, prices)))
    return Controls(tuple(groups), _failures(base))


def _most(nodes: int) -> float:
    return float(max(4, 2 * nodes))


def _failures(base: Base) -> tuple[str, ...]:
    fabric = base.loaded.fabric
    leaves = [fabric.leaf_name(number) for number in range(len(fabric.inventory.leaf_names))]
    named = [name for name in dict.fromkeys(leaves) if name]
    return (*(fabric.nodes if len(fabric.nodes) <= MOST_NODES else ()), *(named if len(named) > 1 else ()))


def controls_data(controls: Controls) -> list[Mapping[str, Any]]:
    """Sliders as the page's script needs them."""
    return [
        {"path": slider.path, "value": slider.value, "low": slider.low, "high": slider.high}
        for _, group in controls.sliders
        for slider in group
    ]

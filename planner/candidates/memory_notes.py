"""What is worth knowing about the memory of the shapes that were chosen, besides that they fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from planner.candidates.menu import Menu
from planner.cost.memory_detail import memory_diagnostics
from planner.diagnostics import Diagnostic, Place, Severity
from planner.plan.shape import Shape

# Said of a plan; that it fits is said by its figures, and how an engine would cut the layers by its launch files.
SAID: Final = frozenset({"GRAPH_MEM", "STATE_SLOTS", "KV_REPLICATED", "MEMORY_BORDERLINE"})


def memory_notes(menu: Menu, names: tuple[str, ...], shapes: Iterable[Shape]) -> Iterator[Diagnostic]:
    """Notes and warnings about the memory of each distinct shape, placed at its deployment."""
    for shape in dict.fromkeys(shapes):
        known = menu.settings.get((shape.deployment, shape.pool, shape.weights_dtype, shape.kv_dtype))
        if known is None:
            continue
        for item in memory_diagnostics(known.setting, shape.degrees, shape.batch, shape.partition):
            if item.code in SAID:
                severity = Severity.WARNING if item.severity is Severity.ERROR else item.severity
                message = f"{names[shape.deployment]} as {shape.degrees}: {item.message}"
                yield replace(item, message=message, severity=severity, place=Place(path=f"deployments.{names[shape.deployment]}"))

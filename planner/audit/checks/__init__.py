"""All checks of the auditor, one file a check, in the order they are run; those of the formulation's rules carry their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from planner.audit.case import Case
from planner.audit.checks import (
    billing,
    buckets,
    budget,
    current,
    degrees,
    document,
    fabric,
    legality,
    load,
    locality,
    memory,
    money,
    objective,
    occupancy,
    pin,
    priority,
    replicas,
    resilience,
    serving,
    spares,
    spread,
    times,
)
from planner.diagnostics import Diagnostic


class Check(NamedTuple):
    """One check: its name, and the function that yields what it finds."""

    name: str
    run: Callable[[Case], Iterator[Diagnostic]]


CHECKS: tuple[Check, ...] = (
    # Whether the document can be read comes first; what it says is checked after.
    Check("document", document.check),
    Check("fabric", fabric.check),
    Check("serving", serving.check),
    Check("occupancy", occupancy.check),
    Check("degrees", degrees.check),
    Check("locality", locality.check),
    Check("legality", legality.check),
    Check("memory", memory.check),
    Check("times", times.check),
    Check("load", load.check),
    Check("buckets", buckets.check),
    Check("priority", priority.check),
    Check("billing", billing.check),
    Check("budget", budget.check),
    Check("replicas", replicas.check),
    Check("spread", spread.check),
    Check("spares", spares.check),
    Check("pin", pin.check),
    Check("resilience", resilience.check),
    Check("current", current.check),
    Check("money", money.check),
    Check("objective", objective.check),
)
"""Every check, in order."""

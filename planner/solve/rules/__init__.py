"""The rules of a plan, one file a rule: a sentence, its inequality, its symbols, and the rows that state it."""

from __future__ import annotations

from planner.solve.locate import locate
from planner.solve.model import Rule
from planner.solve.rules import (
    billing,
    buckets,
    budget,
    current,
    load,
    locality,
    occupancy,
    pin,
    priority,
    replicas,
    resilience,
    spares,
    spread,
)

RULES: tuple[Rule, ...] = (
    Rule("pin", pin.apply),
    # No rule of a plan: the counts by failure domain that the rules below speak of.
    Rule("located", locate),
    Rule("occupancy", occupancy.apply),
    Rule("locality", locality.apply),
    # Before the load, which what goes unserved is part of.
    Rule("priority", priority.apply),
    Rule("load", load.apply),
    Rule("buckets", buckets.apply),
    Rule("billing", billing.apply),
    # Money is complete only after billing and the nodes on which replicas stay.
    Rule("current", current.apply),
    Rule("budget", budget.apply),
    Rule("replicas", replicas.apply),
    Rule("spread", spread.apply),
    Rule("spares", spares.apply),
    Rule("resilience", resilience.apply),
)
"""All rules in the order in which they are written into a model."""

"""Quantities with units: "80GB", "400Gb/s", "2us", "$24/h" <-> SI numbers; bits and bytes are never mixed up."""

from __future__ import annotations

from planner.quantities.fields import (
    Bytes,
    BytesPerSecond,
    FlopsPerSecond,
    Fraction,
    Money,
    MoneyPerHour,
    PerSecond,
    Seconds,
    Tokens,
)
from planner.quantities.formatting import (
    GIBIBYTE,
    format_bandwidth,
    format_bytes,
    format_flops,
    format_fraction,
    format_money,
    format_rate,
    format_seconds,
)
from planner.quantities.reading import QuantityError, currency_of, parse_quantity, refuse_bare
from planner.quantities.units import Kind

__all__ = [
    "GIBIBYTE",
    "Bytes",
    "BytesPerSecond",
    "FlopsPerSecond",
    "Fraction",
    "Kind",
    "Money",
    "MoneyPerHour",
    "PerSecond",
    "QuantityError",
    "Seconds",
    "Tokens",
    "currency_of",
    "format_bandwidth",
    "format_bytes",
    "format_flops",
    "format_fraction",
    "format_money",
    "format_rate",
    "format_seconds",
    "parse_quantity",
    "refuse_bare",
]

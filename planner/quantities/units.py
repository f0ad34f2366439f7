"""Which units each kind of quantity may be written in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What a quantity measures, and so which units it may be written in."""

    BYTES = "bytes"
    BYTES_PER_SECOND = "bandwidth"
    SECONDS = "time"
    RATE = "rate"
    MONEY_PER_HOUR = "price per hour"
    MONEY = "sum of money"
    FRACTION = "share"
    FLOPS = "compute rate"
    TOKENS = "number of tokens"


@dataclass(frozen=True, slots=True)
class Unit:
    """A spelling of a unit: `multiplier` / `divisor` takes the number, prefix applied, to SI; `prefixed` ones are scaled by QuantiPhy."""

    multiplier: float = 1.0
    divisor: float = 1.0
    prefixed: bool = False


def _spellings(unit: str, prefixes: str, divisor: float = 1.0) -> dict[str, Unit]:
    return {f"{prefix}{unit}": Unit(divisor=divisor, prefixed=True) for prefix in prefixes.split()} | {unit: Unit(divisor=divisor)}


_DECIMAL: Final = "k K M G T P"
_BINARY: Final = "Ki Mi Gi Ti Pi"
_COMPUTE: Final = "M G T P E"

UNITS: Final[dict[Kind, dict[str, Unit]]] = {
    Kind.BYTES: _spellings("B", f"{_DECIMAL} {_BINARY}"),
    Kind.BYTES_PER_SECOND: _spellings("B/s", f"{_DECIMAL} {_BINARY}")
    | _spellings("b/s", _DECIMAL, 8.0)
    | _spellings("bit/s", _DECIMAL, 8.0)
    | _spellings("bps", _DECIMAL, 8.0),
    Kind.SECONDS: _spellings("s", "m u n") | {"min": Unit(60.0), "h": Unit(3600.0)},
    Kind.RATE: {
        f"{what}/{per}": Unit(divisor=divisor)
        for what in ("", "req", "requests")
        for per, divisor in (("s", 1.0), ("sec", 1.0), ("second", 1.0), ("min", 60.0), ("minute", 60.0), ("h", 3600.0), ("hour", 3600.0))
    },
    Kind.MONEY_PER_HOUR: {"/h": Unit(), "/hr": Unit(), "/hour": Unit()},
    Kind.MONEY: {},
    Kind.FRACTION: {"%": Unit(divisor=100.0)},
    Kind.FLOPS: _spellings("FLOP/s", _COMPUTE) | _spellings("FLOPS", _COMPUTE) | _spellings("FLOPs", _COMPUTE),
    Kind.TOKENS: {},
}

EXAMPLES: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.BYTES: ("80GB", "80GiB"),
    Kind.BYTES_PER_SECOND: ("400Gb/s", "50GB/s"),
    Kind.SECONDS: ("60ms", "3s", "2us"),
    Kind.RATE: ("4/s", "240/min"),
    Kind.MONEY_PER_HOUR: ("$24/h", "24 USD/h"),
    Kind.MONEY: ("$3", "3 USD"),
    Kind.FRACTION: ("70%", "0.7"),
    Kind.FLOPS: ("989TFLOP/s",),
    Kind.TOKENS: ("2048",),
}

SI_UNITS: Final[dict[Kind, str]] = {
    Kind.BYTES: "B",
    Kind.BYTES_PER_SECOND: "B/s",
    Kind.SECONDS: "s",
    Kind.RATE: "1/s",
    Kind.MONEY_PER_HOUR: "per hour",
    Kind.MONEY: "once",
    Kind.FRACTION: "share of 1",
    Kind.FLOPS: "FLOP/s",
    Kind.TOKENS: "tokens",
}

# Kinds whose bare number can only be read one way.
BARE_KINDS: Final = frozenset({Kind.RATE, Kind.MONEY_PER_HOUR, Kind.MONEY, Kind.FRACTION, Kind.TOKENS})

CURRENCY_SIGNS: Final[dict[str, str]] = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}

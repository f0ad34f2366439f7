"""Relative values: `+20%`, `-10%`, `x2` of what the problem says now, in exact arithmetic and in the unit it is written in."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any, Final

_PERCENT: Final = re.compile(r"([+-])([0-9]+(?:\.[0-9]+)?)\s*%")
_TIMES: Final = re.compile(r"[x×]\s*([0-9]+(?:\.[0-9]+)?)")
_AMOUNT: Final = re.compile(r"(\s*[$€£¥]?\s*)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)((?![0-9.eE_-]).*|)", re.DOTALL)


def factor_of(text: str) -> Fraction | None:
    """Factor that a relative value stands for: `+20%` is 6/5, `x2` is 2; None for any other text."""
    stripped = text.strip()
    if found := _PERCENT.fullmatch(stripped):
        change = Fraction(found[2]) / 100
        return 1 + change if found[1] == "+" else 1 - change
    if found := _TIMES.fullmatch(stripped):
        return Fraction(found[1])
    return None


def scaled(value: Any, factor: Fraction) -> str | None:
    """Text of `value` times `factor`: whole numbers are rounded up, a unit stays as it is written ("60ms" x 1/2 is "30ms").

    None where `value` is no amount.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(math.ceil(value * factor))
    if isinstance(value, float):
        return _decimal(Fraction(repr(value)) * factor) if math.isfinite(value) else None
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    return f"{found[1]}{_decimal(Fraction(found[2]) * factor)}{found[3]}" if found else None


def _decimal(value: Fraction) -> str:
    """Shortest decimal that reads back as the nearest float, without an exponent."""
    if value.denominator == 1:
        return str(value.numerator)
    text = repr(float(value))
    return text if "e" not in text else f"{float(value):.12f}".rstrip("0")

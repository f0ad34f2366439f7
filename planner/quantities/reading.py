"""Text with a unit -> SI number.

Text is read by QuantiPhy, but only in the units of the table: QuantiPhy alone would take "80mB" for 0.08 bytes, "1 min" for a
thousandth of an inch and "400Gb" for whatever the caller hopes. A unit of another kind is refused with what to write instead.
"""

from __future__ import annotations

import math
import re
from typing import Final

from planner.quantities.units import BARE_KINDS, CURRENCY_SIGNS, EXAMPLES, UNITS, Kind

_NUMBER: Final = r"[+-]?(?:[0-9](?:_?[0-9])*)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,4})?"
_TEXT: Final = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>.*)", re.DOTALL)
_CURRENCY_BEFORE: Final = re.compile(r"(?P<currency>[$€£¥])\s*(?P<rest>.*)", re.DOTALL)
_CURRENCY_AFTER: Final = re.compile(r"(?P<currency>[$€£¥]|[A-Z]{3})\s*(?P<rest>/.*|)", re.DOTALL)
_BITS: Final = re.compile(r"(?P<prefix>[kKMGTP]?i?)(?:b|bit|bits)")
_LONGEST: Final = 60


class QuantityError(ValueError):
    """A quantity that cannot be used: `code` is stable, `message` says what is wrong, `hint` what to write instead."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        self.code = code
        self.message = message
        self.hint = hint
        super().__init__(f"{message}; {hint}")


def shown_value(value: object) -> str:
    """A value as messages show it: in backquotes, short, printable."""
    # An integer of thousands of digits cannot even be printed; the type is all there is to say.
    text = str(value) if not isinstance(value, int) or abs(value) < 10**_LONGEST else "a very long integer"
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return "`" + "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text) + "`"


def _written(kind: Kind) -> str:
    return "write for example " + " or ".join(EXAMPLES[kind])


def _article(kind: Kind) -> str:
    return kind.value if kind is Kind.BYTES else f"a {kind.value}"


def _check_range(value: float, kind: Kind, shown: str) -> float:
    if not math.isfinite(value):
        raise QuantityError("NOT_FINITE", f"{shown} is not a finite number", _written(kind))
    if value < 0:
        raise QuantityError("OUT_OF_RANGE", f"{shown} is negative, and {_article(kind)} cannot be", _written(kind))
    if kind is Kind.FRACTION and value > 1:
        percent = f"{value:g}%" if value <= 100 and "%" not in shown else "at most 100%"
        raise QuantityError("OUT_OF_RANGE", f"{shown} is more than the whole", f"write {percent}, or a number from 0 to 1")
    if kind is Kind.TOKENS and value != int(value):
        raise QuantityError("NOT_AN_INTEGER", f"{shown} is not a whole number of tokens", f"write {math.ceil(value)}")
    return value


def _currency_split(text: str) -> tuple[str | None, str]:
    """Take the currency out of a price: ("USD", "24/h") from "$24/h" and "24 USD/h"."""
    if before := _CURRENCY_BEFORE.fullmatch(text):
        return CURRENCY_SIGNS[before["currency"]], before["rest"].strip()
    head = _TEXT.fullmatch(text)
    if head and (after := _CURRENCY_AFTER.fullmatch(head["unit"].strip())):
        return CURRENCY_SIGNS.get(after["currency"], after["currency"]), f"{head['number']}{after['rest'].strip()}"
    return None, text


def currency_of(text: object) -> str | None:
    """ISO code of the currency a price names ("$24/h" is USD, "24 EUR/h" is EUR), or None where it names none."""
    return _currency_split(re.sub(r"\s*/\s*", "/", text.strip()))[0] if isinstance(text, str) and len(text) <= _LONGEST else None


def parse_quantity(text: str | float, kind: Kind) -> float:
    """Read a quantity of one kind as an SI number.

    Parameters
    ----------
    text
        Number and unit ("400Gb/s"), or a number that is already SI.
    kind
        What is measured; only units of this kind are taken.

    Returns
    -------
    float
        [B], [B/s], [s], [1/s], [currency per hour], share of 1, [FLOP/s] or tokens. "400Gb/s" is 5e10 B/s, "80GiB" 85899345920 B.

    Raises
    ------
    QuantityError
        If the text is no number, its unit is missing, unknown or of another kind, or the value is negative or not finite.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError("NOT_A_QUANTITY", f"{shown_value(text)} is not {_article(kind)}", _written(kind))
    if not isinstance(text, str):
        try:
            return _check_range(float(text), kind, shown_value(text))
        except OverflowError:
            raise QuantityError("OUT_OF_RANGE", "the number is too large", _written(kind)) from None
    shown = shown_value(text)
    if len(text) > _LONGEST:
        raise QuantityError("NOT_A_QUANTITY", f"{shown} is not {_article(kind)}", _written(kind))
    stripped = re.sub(r"\s*/\s*", "/", text.strip().replace("µ", "u").replace("μ", "u"))
    currency: str | None = None
    if kind in {Kind.MONEY_PER_HOUR, Kind.MONEY}:
        currency, stripped = _currency_split(stripped)
    parts = _TEXT.fullmatch(stripped)
    number, unit = (parts["number"], parts["unit"].strip()) if parts else ("", stripped)
    if not any(character.isdigit() for character in number.partition("e")[0].partition("E")[0]):
        if re.fullmatch(r"[+-]?\.?(nan|inf|infinity|∞)\S*", stripped, re.IGNORECASE):
            raise QuantityError("NOT_FINITE", f"{shown} is not a finite number", _written(kind))
        raise QuantityError("NOT_A_QUANTITY", f"{shown} is not {_article(kind)}", _written(kind))
    if not unit:
        if kind not in BARE_KINDS or (currency is not None and kind is not Kind.MONEY):
            raise _missing_unit(number, kind, shown, currency)
        return _check_range(float(number), kind, shown)
    known = UNITS[kind].get(unit)
    if known is None:
        raise _wrong_unit(number, unit, kind, shown)
    return _check_range(_scaled(number, unit, prefixed=known.prefixed) * known.multiplier / known.divisor, kind, shown)


def _scaled(number: str, unit: str, *, prefixed: bool) -> float:
    if not prefixed:
        return float(number)
    from quantiphy import Quantity  # costs more than the rest of this module; most commands need no quantity before they run

    if "e" in number.lower():  # QuantiPhy drops the prefix of a number that has an exponent: 1e3GB would be 1000 B
        return float(number) * float(Quantity(f"1{unit}", binary=True))
    return float(Quantity(f"{number}{unit}", binary=True))


def _missing_unit(number: str, kind: Kind, shown: str, currency: str | None = None) -> QuantityError:
    if kind is Kind.MONEY_PER_HOUR:
        return QuantityError("MISSING_UNIT", f"{shown} does not say per what", f"write {number} {currency}/h")
    endings = {
        Kind.BYTES: ("GB", "GiB"),
        Kind.BYTES_PER_SECOND: ("Gb/s", "GB/s"),
        Kind.SECONDS: ("ms", "s"),
        Kind.FLOPS: ("TFLOP/s",),
    }[kind]
    return QuantityError("MISSING_UNIT", f"{shown} has no unit", "write " + " or ".join(f"{number}{ending}" for ending in endings))


def _wrong_unit(number: str, unit: str, kind: Kind, shown: str) -> QuantityError:
    """Say why a unit is not taken, and what the writer most likely meant."""

    def wrong(message: str, hint: str) -> QuantityError:
        return QuantityError("WRONG_UNIT", f"{shown} {message}", hint)

    bits = _BITS.fullmatch(unit)
    if kind is Kind.BYTES and (bits or unit in UNITS[Kind.BYTES_PER_SECOND]):
        if not bits:
            return wrong("is a bandwidth, and an amount of bytes is asked for", _written(kind))
        prefix = bits["prefix"]
        eighth = f"{float(number) / 8:g}{prefix}B"
        return wrong("counts bits, and bytes are asked for", f"write {number}{prefix}B if bytes were meant, or {eighth} for that many bits")
    if kind is Kind.BYTES_PER_SECOND:
        if bits:
            return wrong("is an amount of bits, not a bandwidth", f"write {number}{bits['prefix']}b/s")
        if unit in UNITS[Kind.BYTES]:
            return wrong("is an amount of bytes, not a bandwidth", f"write {number}{unit}/s (bytes) or {number}{unit[:-1]}b/s (bits)")
        if unit.endswith("Bps"):
            return wrong("is easily mistaken for bits", f"write {number}{unit[:-3]}B/s for bytes or {number}{unit[:-3]}b/s for bits")
    if kind is Kind.SECONDS and unit in {"m", "M"}:
        return wrong("could be milliseconds or minutes", f"write {number}ms or {number}min")
    if kind is Kind.MONEY and unit in UNITS[Kind.MONEY_PER_HOUR]:
        return wrong("is a price per hour, and what is paid once is asked for", f"write ${number}")
    if kind is Kind.TOKENS:
        return wrong("is not a plain number of tokens", "write the number out, for example 8192 for 8k")
    if kind is Kind.MONEY_PER_HOUR and unit.startswith("/"):
        return wrong("is not per hour", f"prices are per hour: {_written(kind)}")
    others = [other for other in Kind if other is not kind and unit in UNITS[other]]
    if others:
        return wrong(f"is {_article(others[0])}, and {_article(kind)} is asked for", _written(kind))
    alike = [spelling for spelling in UNITS[kind] if spelling.lower() == unit.lower()]
    if alike:
        return wrong(f"has the unit `{unit}`, whose case matters", "write " + " or ".join(f"{number}{spelling}" for spelling in alike[:3]))
    cut = [f"{unit}{rest}" for rest in ("B", "iB", "B/s", "b/s", "s", "FLOP/s") if f"{unit}{rest}" in UNITS[kind]]
    if cut:
        return wrong("does not say of what", "write " + " or ".join(f"{number}{spelling}" for spelling in cut))
    return wrong(f"has the unit {shown_value(unit)}, which is not one of {_article(kind)}", _written(kind))


def refuse_bare(value: object, kind: Kind) -> None:
    """Refuse a number without a unit where files must name one.

    Raises
    ------
    QuantityError
        If `value` is a number and `kind` can be read in more than one unit.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and kind not in BARE_KINDS and math.isfinite(value):
        raise _missing_unit(f"{value:g}" if isinstance(value, float) else str(value)[:_LONGEST], kind, shown_value(value))

"""Limits of a search as they are written on a command line: how long, and how near to the best."""

from __future__ import annotations

from planner.quantities import Kind, QuantityError, parse_quantity


def seconds_of(text: str | None) -> float | None:
    """Read `--time-limit` [s]; None where it is not given.

    Raises
    ------
    QuantityError
        Where it is no positive time.
    """
    if text is None:
        return None
    seconds = _read("--time-limit", text, Kind.SECONDS)
    if not seconds > 0.0:
        raise QuantityError(
            "OUT_OF_RANGE", f"--time-limit: `{text[:40]}` leaves no time for a plan", "write for example 30s, or leave it out"
        )
    return seconds


def share_of(text: str) -> float:
    """Read `--gap` as a share of 1: `1%` or 0.01.

    Raises
    ------
    QuantityError
        Where it is no share from 0 to below 1.
    """
    share = _read("--gap", text, Kind.FRACTION)
    if not 0.0 <= share < 1.0:
        raise QuantityError("OUT_OF_RANGE", f"--gap: `{text[:40]}` is no share from 0 to below 1", "write for example 1% or 0.01")
    return share


def _read(option: str, text: str, kind: Kind) -> float:
    try:
        return parse_quantity(text, kind)
    except QuantityError as error:
        raise QuantityError(error.code, f"{option}: {error.message}", error.hint) from None

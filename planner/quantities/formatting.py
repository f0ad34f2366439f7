"""SI numbers -> text for reports."""

from __future__ import annotations

from typing import Final

from planner.quantities.units import CURRENCY_SIGNS

GIBIBYTE: Final = 1024.0**3


def format_bytes(value: float, digits: int = 1) -> str:
    """Bytes as GiB, the unit GPU memory is sold in (47.3 GiB); smaller amounts as MiB, KiB or B."""
    for unit, size in (("GiB", GIBIBYTE), ("MiB", 1024.0**2), ("KiB", 1024.0)):
        # Half a unit in the last digit decides, so that 1023.99 KiB is not printed as 1024.0 KiB.
        if abs(value) >= size * (1 - 0.5 * 10.0**-digits / 1024):
            return f"{value / size:.{digits}f} {unit}"
    return f"{value:.0f} B"


def format_bandwidth(value: float, digits: int = 3) -> str:
    """Bytes per second with a decimal prefix, to `digits` significant ones (50 GB/s)."""
    return _prefixed(value, digits, (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)))


def format_flops(value: float, digits: int = 3) -> str:
    """FLOP/s with a decimal prefix (989 TFLOP/s)."""
    return _prefixed(value, digits, (("PFLOP/s", 1e15), ("TFLOP/s", 1e12), ("GFLOP/s", 1e9), ("MFLOP/s", 1e6), ("FLOP/s", 1.0)))


def _prefixed(value: float, digits: int, scales: tuple[tuple[str, float], ...]) -> str:
    rounded = float(f"{value:.{digits}g}")
    unit, size = next(((unit, size) for unit, size in scales if abs(rounded) >= size), scales[-1])
    return f"{rounded / size:.{max(digits, 3)}g} {unit}"


def format_seconds(value: float, digits: int = 1) -> str:
    """Seconds as us below a tenth of a millisecond, ms below one second, else s (41.0 ms)."""
    if value == 0:
        return "0 s"
    for unit, size, below in (("us", 1e-6, 1e-4), ("ms", 1e-3, 1.0)):
        if abs(value) < below and abs(round(value / size, digits)) * size < below:
            return f"{value / size:.{digits}f} {unit}"
    return f"{value:.{digits}f} s"


def format_rate(value: float) -> str:
    """Events per second, to four significant digits (4/s)."""
    return f"{value:.4g}/s"


def format_money(value: float, currency: str = "USD", per: str = "/h") -> str:
    """Money per hour with its currency ($24.00/h, 24.00 CHF/h); `per=""` leaves the hour out."""
    sign = next((sign for sign, code in CURRENCY_SIGNS.items() if code == currency), None)
    return f"{sign}{value:,.2f}{per}" if sign else f"{value:,.2f} {currency}{per}"


def format_fraction(value: float, digits: int = 0) -> str:
    """Share of 1 as per cent (73 %)."""
    return f"{value * 100:.{digits}f} %"

"""Figures as people read them: milliseconds, GiB, dollars, shares."""

from __future__ import annotations

from planner.quantities import format_money

NOT_EXAMINED = "REPAIRS_NOT_EXAMINED"
"""Code of what says which repairs were not decided: it is listed, and is none itself."""


def milliseconds(seconds: float) -> str:
    """A time as `41.0 ms`, `0.9 s` from one second on, or microseconds under a tenth of a millisecond."""
    if seconds >= 1.0:
        return f"{seconds:.2f} s"
    if seconds >= 1e-4 or seconds == 0:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e6:.0f} us"


def money(amount: float | None, currency: str = "USD") -> str:
    """An amount as `$24.00`; `no price` when the topology gives none."""
    return "no price" if amount is None else format_money(amount, currency, per="")


def per_hour(amount: float | None, currency: str = "USD") -> str:
    """A price as `$24.00/h`."""
    return f"{money(amount, currency)}/h" if amount is not None else "no price"


def percent(share: float, digits: int = 0) -> str:
    """A share as `14 %`."""
    return f"{share * 100:.{digits}f} %"


def gibibytes(amount: float) -> str:
    """An amount in GiB with one decimal."""
    return f"{amount:.1f}"


def gap_words(gap: float) -> str:
    """A gap as `0 %`, with enough digits that a positive gap never reads as zero."""
    if gap == 0:
        return "0 %"
    for digits in range(1, 7):
        text = f"{gap * 100:.{digits}f}"
        if float(text) > 0:
            return f"{text} %"
    return f"{gap * 100:.1e} %"


def quantity_of(count: int, singular: str, plural: str | None = None) -> str:
    """A count with its noun: `1 replica`, `2 replicas`."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def carried_words(capacity: float, load: float, unit: str, *, mixed: bool) -> str:
    """What the replicas of a deployment carry of what was asked; all of them together where their shapes are `mixed`."""
    return f"{'together they serve' if mixed else 'serves'} {_amount(capacity)} of {_amount(load)} {unit} asked"


def _amount(value: float) -> str:
    """Whole from a hundred on, three digits below."""
    return f"{value:,.0f}" if abs(value) >= 100.0 or value == round(value) else f"{value:,.3g}"


def shape_words(tp: int, pp: int, ep: int, dp: int) -> str:
    """Degrees as `TP8 x PP1`, data and expert parallelism only where used."""
    words = f"TP{tp} x PP{pp}"
    if dp > 1:
        words += f" x DP{dp}"
    if ep > 1:
        words += f" x EP{ep}"
    return words

"""The greatest or least whole number at which something holds, from a guess that is usually right."""

from __future__ import annotations

from collections.abc import Callable

Holds = Callable[[int], bool]


def greatest(holds: Holds, guess: int, least: int, most: int) -> int | None:
    """Greatest number from `least` to `most` at which `holds`, None where it holds at none; `holds` must be true up to some number and false beyond.

    With the right guess two tests settle it; from a wrong one the steps double until the number is bracketed, and are halved from there.
    """
    number = min(max(guess, least), most)
    step = 1
    if holds(number):
        low = number
        while low < most and holds(number := min(low + step, most)):
            low, step = number, step * 2
        if low == most:
            return most
        high = number
    else:
        high = number
        while high > least and not holds(number := max(high - step, least)):
            high, step = number, step * 2
        if high == least:
            return None
        low = number
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def least(holds: Holds, guess: int, lowest: int, most: int) -> int | None:
    """Least number from `lowest` to `most` at which `holds`, None where it holds at none; `holds` must be false up to some number and true beyond."""
    found = greatest(lambda number: holds(-number), -guess, -most, -lowest)
    return None if found is None else -found

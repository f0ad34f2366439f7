"""Figures as integers, rounded so that an integer plan is never better on paper than in fact."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MONEY_UNITS = 10**6
"""Integer units of money in one $/h."""

TIME_UNITS = 10**9
"""Integer units of time in one second: the solver counts nanoseconds [ns]."""

LOAD_UNITS = 10**6
"""Integer units in one unit of load (one sequence, one output token/s), unless the sums would grow too large."""

SHARE_UNITS = 10**6
"""Integer units of a share of the stated load."""

UNSERVED_UNITS = 2**40
"""Weight of a whole load that goes unserved."""

MONEY = "money/h"
"""Unit of money per hour, whatever the currency."""

STAGE_UNITS: dict[str, tuple[float, str]] = {
    "cost": (MONEY_UNITS, MONEY),
    "moves": (1, "replicas"),
    "gpus": (1, "GPUs"),
    "latency": (TIME_UNITS, "s"),
    "first_token": (TIME_UNITS, "s"),
    "throughput": (-SHARE_UNITS, "of the load"),
    "unserved": (UNSERVED_UNITS, "loads"),
    "token_time": (TIME_UNITS, "s"),
    "communication": (TIME_UNITS, "s"),
    "whole_scopes": (1, "scopes"),
    "order": (1, ""),
}
"""Integer units in one unit that a stage's value is told in, and that unit."""

EXACT_LIMIT = 2**53
"""Largest integer below which a double still tells every integer apart; objectives and rows stay under it."""


CLEAR = 1e-3
"""Products of doubles this far from an integer, and below 2^40, round as the decimals that they stand for."""


def clear_floor(value: float, scale: int) -> int | None:
    """Floor of `value` x `scale` where doubles are sure of it and it is no integer, else None."""
    product = value * scale
    if not -(2.0**40) < product < 2.0**40:
        return None
    whole = math.floor(product)
    return whole if CLEAR < product - whole < 1 - CLEAR else None


def floor_units(value: float, scale: int) -> int:
    """Round `value` x `scale` down, reading the float as it is written (0.29 is 29/100, not its binary neighbour)."""
    if float(value).is_integer():
        return int(value) * scale
    if (clear := clear_floor(value, scale)) is not None:
        return clear
    return int((Decimal(repr(float(value))) * scale).to_integral_value(ROUND_FLOOR))


def ceil_units(value: float, scale: int) -> int:
    """Round `value` x `scale` up, reading the float as it is written."""
    if float(value).is_integer():
        return int(value) * scale
    if (clear := clear_floor(value, scale)) is not None:
        return clear + 1
    return int((Decimal(repr(float(value))) * scale).to_integral_value(ROUND_CEILING))


def floor_column(values: FloatArray, scales: IntArray) -> IntArray:
    """Round every value x its scale down as `floor_units` does, shape [n]; one by one only those that doubles are not sure of."""
    products = values * scales
    whole = np.floor(products)
    clear = (np.abs(products) < 2.0**40) & (products - whole > CLEAR) & (products - whole < 1 - CLEAR) & (np.floor(values) != values)
    found = np.where(clear, whole, 0.0).astype(np.int64)
    for row in np.flatnonzero(~clear).tolist():
        found[row] = floor_units(float(values[row]), int(scales[row]))
    return found


def ceil_money(dollars_per_hour: float) -> int:
    """Round a price [$/h] up to 1e-6 $/h; noise below 1e-9 $/h, as sums of floats leave it, does not count."""
    return ceil_units(round(dollars_per_hour, 9), MONEY_UNITS)


def floor_money(dollars_per_hour: float) -> int:
    """Round a budget [$/h] down to 1e-6 $/h; noise below 1e-9 $/h does not count."""
    return floor_units(round(dollars_per_hour, 9), MONEY_UNITS)


def load_scale(load: float, capacities: Iterable[float]) -> int:
    """Choose the integer units of one unit of load, so that a covering sum stays below 2^53.

    A cover never needs more than ceil(load / q) replicas of one shape, so its worst sum is n_shapes x (load + max q).
    """
    found = list(capacities)
    worst = max(1, len(found)) * (load + max(found, default=0.0))
    scale = LOAD_UNITS
    while scale > 1 and worst * scale >= EXACT_LIMIT:
        scale //= 10
    return scale

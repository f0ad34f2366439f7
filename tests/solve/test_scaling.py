"""Figures become integers that never flatter the plan."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.solve.scaling import EXACT_LIMIT, ceil_money, ceil_units, floor_column, floor_money, floor_units, load_scale

FIGURES = st.floats(1e-3, 1e9)


def test_decimals_are_read_as_written():
    assert floor_units(0.29, 100) == 29
    assert ceil_units(0.29, 100) == 29
    assert ceil_units(0.07, 10**6) == 70_000


def test_noise_of_sums_is_no_money():
    assert ceil_money(24.000000000000004) == 24_000_000
    assert floor_money(23.999999999999996) == 24_000_000
    assert ceil_money(24.0000001) == 24_000_001


@given(FIGURES)
def test_rounding_brackets_the_figure(value):
    assert floor_units(value, 10**6) <= ceil_units(value, 10**6) <= floor_units(value, 10**6) + 1


@given(st.one_of(FIGURES, st.integers(0, 10**9), st.decimals(0, 10**6, places=6).map(float)), st.sampled_from([1, 100, 10**6]))
def test_rounding_is_that_of_the_decimal_as_written(value, scale):
    exact = Decimal(repr(float(value))) * scale
    assert floor_units(value, scale) == int(exact.to_integral_value(ROUND_FLOOR))
    assert ceil_units(value, scale) == int(exact.to_integral_value(ROUND_CEILING))


@given(
    st.lists(
        st.tuples(st.one_of(FIGURES, st.integers(0, 10**9), st.decimals(0, 10**6, places=6).map(float)), st.sampled_from([1, 100, 10**6]))
    )
)
def test_a_column_is_rounded_like_each_of_its_values(rows):
    values, scales = (np.array(column) for column in zip(*rows, strict=True)) if rows else (np.zeros(0), np.zeros(0, dtype=np.int64))
    assert floor_column(values.astype(np.float64), scales).tolist() == [floor_units(float(value), scale) for value, scale in rows]


@given(FIGURES, st.lists(FIGURES, min_size=1, max_size=50))
def test_covering_sums_stay_exact(load, capacities):
    scale = load_scale(load, capacities)
    assert scale in {10**power for power in range(7)}
    assert scale == 1 or len(capacities) * (load + max(capacities)) * scale < EXACT_LIMIT

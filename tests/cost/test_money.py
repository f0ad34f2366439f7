from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost.money import hourly_cost, per_million_tokens, total_tokens_per_second


def test_gpus_are_billed_one_by_one_or_by_whole_nodes():
    used = np.array([0.0, 1.0, 8.0, 9.0, 16.0])
    np.testing.assert_allclose(hourly_cost(used, 3.0), [0.0, 3.0, 24.0, 27.0, 48.0])
    np.testing.assert_allclose(hourly_cost(used, 3.0, billing="node"), [0.0, 24.0, 24.0, 48.0, 48.0])
    np.testing.assert_allclose(hourly_cost(used, None, billing="node", price_per_node=20.0), [0.0, 20.0, 20.0, 40.0, 40.0])
    np.testing.assert_allclose(hourly_cost(used, None, price_per_node=20.0), used * 2.5)


@given(st.integers(0, 10000), st.floats(0.01, 100.0), st.integers(1, 16))
def test_a_whole_node_never_costs_less_than_its_gpus(gpus, price, per_node):
    by_gpu = hourly_cost(np.array([float(gpus)]), price, gpus_per_node=per_node)
    by_node = hourly_cost(np.array([float(gpus)]), price, gpus_per_node=per_node, billing="node")
    assert by_node[0] >= by_gpu[0] * (1.0 - 1e-12)


def test_a_missing_price_or_an_unknown_billing_is_refused():
    with pytest.raises(ValueError, match="price"):
        hourly_cost(np.array([1.0]), None)
    with pytest.raises(ValueError, match="billing"):
        hourly_cost(np.array([1.0]), 1.0, billing="month")


def test_dollars_per_million_tokens():
    # $24/h at 1000 tokens/s: 3.6 million tokens an hour.
    assert per_million_tokens(24.0, 1000.0) == pytest.approx(24.0 / 3.6)
    np.testing.assert_array_equal(per_million_tokens(np.array([1.0]), np.array([0.0])), [np.inf])
    assert total_tokens_per_second(100.0, 3000.0, 1000.0) == pytest.approx(400.0)

from __future__ import annotations

import statistics

import pytest

from planner.catalog.gpus import gpu, gpus
from planner.catalog.prices import example_price, prices


@pytest.mark.parametrize("row", prices(), ids=lambda row: f"{row.provider}-{row.instance}")
def test_every_row_says_whose_price_it_is_and_when(row):
    assert row.provider
    assert row.instance
    assert row.source
    assert row.date
    assert row.terms in {"on-demand", "reserved"}
    assert 0.3 < row.per_gpu_hour < 30
    assert gpu(row.gpu).name == row.gpu


def test_the_example_is_the_lower_median_of_the_on_demand_rows():
    for entry in gpus():
        offers = [row.per_gpu_hour for row in prices() if row.gpu == entry.name and row.terms == "on-demand"]
        found = example_price(entry.name)
        assert entry.price == found
        if not offers:
            assert found is None
            continue
        assert found is not None
        assert found.terms == "on-demand"
        assert found.per_gpu_hour == pytest.approx(statistics.median_low(offers))


def test_a_reservation_is_never_the_example():
    reserved = {row.gpu for row in prices() if row.terms == "reserved"}
    assert reserved
    assert all(found.terms == "on-demand" for name in reserved if (found := example_price(name)) is not None)


def test_the_price_is_per_gpu():
    row = next(row for row in prices() if row.instance == "BM.GPU.H100.8")
    assert (row.gpus, row.per_gpu_hour) == (8, 10.0)

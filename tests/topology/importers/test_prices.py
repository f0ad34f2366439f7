"""Price lists: the slips of published ones are caught, the right row is taken."""

from __future__ import annotations

import pytest

from planner.diagnostics import PlannerError
from planner.topology.importers.prices import read_prices

HEADER = "provider,instance,gpu,count,usd_per_hour\n"


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("azure,Standard_ND96isr_H100_v5,H100-SXM-80GB,12,98.32", "PRICE_COUNT_WRONG"),
        ("ours,,H100-SXM-80GB,12,98.32", "PRICE_COUNT_WRONG"),
        ("ours,,H100-SXM-80GB,16,98.32", "PRICE_COUNT_WRONG"),
        ("gcp,,tpu-v5e,4,700.0", "PRICE_PLACEHOLDER"),
        ("gcp,,H100-SXM-80GB,8,700", "PRICE_PLACEHOLDER"),
        ("ours,,H100-SXM-80GB,8,4000", "PRICE_UNLIKELY"),
        ("ours,,H100-SXM-80GB,8,0.01", "PRICE_UNLIKELY"),
        ("ours,,H100-SXM-80GB,8,-20", "PRICE_UNLIKELY"),
        ("ours,,H100-SXM-80GB,8,cheap", "PRICE_NOT_A_NUMBER"),
        ("ours,,H100-SXM-80GB,many,20", "PRICE_NOT_A_NUMBER"),
        ("ours,,H100-SXM-80GB,8,nan", "PRICE_NOT_A_NUMBER"),
        ("aws,p5.48xlarge,H100,8,55", "PRICE_GPU_UNKNOWN"),
    ],
)
def test_a_row_that_cannot_be_right_is_refused_with_its_line(row, code):
    with pytest.raises(PlannerError) as caught:
        read_prices(f"{HEADER}ours,,B200,8,40\n{row}\n", "prices.csv")
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.place.line == 3


def test_all_bad_rows_are_told_at_once():
    with pytest.raises(PlannerError) as caught:
        read_prices(f"{HEADER}a,,H100-SXM-80GB,12,9\nb,,H100-SXM-80GB,8,700.0\n", "prices.csv")
    assert [item.place.line for item in caught.value.diagnostics] == [2, 3]


@pytest.mark.parametrize(("text", "code"), [("a,b\n1,2\n", "PRICE_COLUMNS_MISSING"), (HEADER, "PRICES_EMPTY"), ("  ", "EMPTY_FILE")])
def test_what_is_no_price_list_is_refused(text, code):
    with pytest.raises(PlannerError) as caught:
        read_prices(text, "prices.csv")
    assert caught.value.diagnostics[0].code == code


def test_an_instance_beats_the_median_and_the_median_is_the_lower():
    rows = "a,x,H100-SXM-80GB,8,60\nb,y,H100-SXM-80GB,8,30\nc,p5.48xlarge,H100-SXM-80GB,8,55\nd,z,H100-SXM-80GB,8,90\n"
    prices = read_prices(HEADER + rows, "prices.csv")
    assert prices.of_node("p5.48xlarge", "h100-sxm-80gb", 8)[0].price == 55
    assert prices.of_node(None, "h100-sxm-80gb", 8)[0].price == 55
    assert prices.of_node(None, "h100-sxm-80gb", 4) is None


def test_blank_prices_and_types_nobody_knows_are_passed_over():
    rows = "a,p5e,H200-SXM-141GB,8,\nb,,warp-9,8,40\nc,,H200-SXM-141GB,8,44\n"
    assert len(read_prices(HEADER + rows, "prices.csv").offers) == 1


def test_the_columns_of_skypilots_catalogue_are_read():
    text = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,Price\ng,L40S,4.0,96,9.14\n"
    (offer,) = read_prices(text, "vms.csv").offers
    assert (offer.gpu, offer.gpus, offer.price) == ("l40s-48gb", 4, 9.14)

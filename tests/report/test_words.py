"""Laws of the words that figures are told in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.report.words import carried_words, gap_words, milliseconds, money, percent, shape_words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.041, "41.0 ms"), (0.9, "900.0 ms"), (1.5, "1.50 s"), (23.97e-6, "24 us"), (0.0, "0.0 ms"), (2.5e-4, "0.2 ms")]
)
def test_times_read_in_their_own_unit(seconds, words):
    assert milliseconds(seconds) == words


@pytest.mark.parametrize(
    ("amount", "currency", "words"),
    [(24.0, "USD", "$24.00"), (1234.5, "EUR", "€1,234.50"), (3.0, "CHF", "3.00 CHF"), (None, "USD", "no price")],
)
def test_money_names_its_currency(amount, currency, words):
    assert money(amount, currency) == words


@given(st.floats(min_value=1e-9, max_value=1.0))
def test_a_positive_gap_never_reads_as_closed(gap):
    assert float(gap_words(gap).removesuffix(" %")) > 0


def test_a_closed_gap_reads_as_closed():
    assert gap_words(0.0) == "0 %"


def test_degrees_that_are_not_used_are_not_named():
    assert shape_words(8, 1, 1, 1) == "TP8 x PP1"
    assert shape_words(1, 2, 16, 16) == "TP1 x PP2 x DP16 x EP16"


def test_shares_read_as_percent():
    assert percent(0.145, 1) == "14.5 %"


def test_replicas_of_several_shapes_serve_together():
    assert carried_words(100.0, 90.0, "sequences", mixed=False) == "serves 100 of 90 sequences asked"
    assert carried_words(13_528.4, 12_000.0, "output tokens/s", mixed=True) == "together they serve 13,528 of 12,000 output tokens/s asked"


@pytest.mark.parametrize(
    ("capacity", "load", "words"),
    [
        (891.057, 600.0, "serves 891 of 600 "),
        (60.0, 60.0, "serves 60 of 60 "),
        (2.3456, 1.5, "serves 2.35 of 1.5 "),
        (2075.57, 2000, "serves 2,076 of 2,000 "),
    ],
)
def test_what_is_carried_has_no_more_digits_than_it_means(capacity, load, words):
    assert carried_words(capacity, load, "tokens/s", mixed=False).startswith(words)

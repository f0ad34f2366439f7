from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.nearest import nearest, plain, unknown_name

KNOWN = ("h100-sxm-80gb", "h100-pcie-80gb", "a100-sxm-80gb", "l40s-48gb")


@pytest.mark.parametrize(
    ("written", "read"), [("H100 SXM (80GB)", "h100sxm80gb"), ("Qwen/Qwen3_5-27B", "qwen/qwen3527b"), ("Llama-3.1", "llama3.1")]
)
def test_case_and_punctuation_do_not_tell_names_apart(written, read):
    assert plain(written) == read


def test_names_that_contain_what_was_asked_come_first():
    assert nearest("pcie", KNOWN)[0] == "h100-pcie-80gb"
    assert nearest("h100", KNOWN)[:2] == ("h100-sxm-80gb", "h100-pcie-80gb")


def test_a_slip_of_letters_finds_the_name():
    assert nearest("a100-smx-80gb", KNOWN)[0] == "a100-sxm-80gb"


def test_nothing_near_is_nothing():
    assert nearest("zebra", KNOWN) == ()
    assert nearest("", KNOWN) == ()


@given(st.text(max_size=200), st.lists(st.text(max_size=30), max_size=20))
def test_suggestions_are_known_names_without_repeats(name, known):
    found = nearest(name, known)
    assert set(found) <= set(known)
    assert len(set(found)) == len(found) <= 5


def test_the_error_says_what_is_near_or_where_the_list_is():
    assert "h100-sxm-80gb" in str(unknown_name("UNKNOWN_GPU", "GPU", "h100", KNOWN, "planner catalog gpus"))
    assert "planner catalog gpus" in str(unknown_name("UNKNOWN_GPU", "GPU", "zebra", KNOWN, "planner catalog gpus"))

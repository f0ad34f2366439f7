"""Relative values, host lists that grow and shrink, and values split at the right commas."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.topology.host_lists import expand_hosts
from planner.whatif.node_counts import host_list, resized, resized_group, without_nodes
from planner.whatif.relative import factor_of, scaled
from planner.whatif.scenarios import grid_scenarios, split_values, text_of


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("+20%", Fraction(6, 5)),
        ("-10%", Fraction(9, 10)),
        ("x2", Fraction(2)),
        ("x0.5", Fraction(1, 2)),
        ("64", None),
        ("xgmi", None),
        ("20%", None),
    ],
)
def test_what_is_relative(text, factor):
    assert factor_of(text) == factor


@pytest.mark.parametrize(
    ("value", "text", "answer"),
    [
        (400, "x2", "800"),
        (33, "+10%", "37"),
        (2.5, "+20%", "3.0"),
        ("$24/h", "+20%", "$28.8/h"),
        ("60ms", "x0.5", "30ms"),
        ("240/min", "x2", "480/min"),
        ("70%", "-10%", "63%"),
        ("24 USD/h", "x1.5", "36 USD/h"),
        ("llama-3.1-70b", "x2", None),
        ([4, 8], "x2", None),
        (True, "x2", None),
        (None, "x2", None),
    ],
)
def test_what_a_relative_value_makes_of_the_problems_own(value, text, answer):
    found = scaled(value, factor_of(text))
    assert found == answer or (found is not None and answer is not None and float(found) == float(answer))


@given(st.integers(1, 10**6), st.integers(1, 500))
def test_a_whole_number_is_rounded_up_exactly(value, percent):
    assert int(scaled(value, factor_of(f"+{percent}%"))) == -(-value * (100 + percent) // 100)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12, unique=True))
def test_a_host_list_names_what_it_was_made_of(numbers):
    names = [f"rack-{number:02d}" for number in numbers]
    assert set(expand_hosts(host_list(names), 1000)) == set(names)


def test_groups_go_on_as_they_are_numbered():
    assert resized(["h-01", "h-02"], 4) == ("h-01", "h-02", "h-03", "h-04")
    assert resized(["h-01", "h-02"], 4, {"h-03"}) == ("h-01", "h-02", "h-04", "h-05")
    assert resized(["h-01", "h-02"], 1) == ("h-01",)
    assert resized(["alone"], 3) == ("alone", "alone-2", "alone-3")


def test_failure_domains_grow_with_their_nodes():
    group = {"name": "h-[1-2]", "failure_domains": {"rack": "rack-[7-8]", "row": "row-1"}}
    assert resized_group(group, 4, ()) == {"name": "h-[1-4]", "failure_domains": {"rack": "rack-[7-10]", "row": "row-1"}}


def test_marks_on_nodes_that_are_gone_are_gone():
    entries = ["h-[1-3]:[0,1]", "h-3", "other:2"]
    assert without_nodes(entries, frozenset({"h-2", "h-3"})) == ["h-1:[0,1]", "other:2"]


def test_commas_inside_brackets_split_nothing():
    assert split_values("1,[4,8],{a: 1, b: 2},'x,y'") == ["1", "[4,8]", "{a: 1, b: 2}", "'x,y'"]


@pytest.mark.parametrize("value", [64, 0.5, "60ms", "64", "", "true", True, None, [4, 8], {"weights": "fp8"}])
def test_values_read_back_as_they_were(value):
    from planner.problem.overrides import Override

    read = Override("path", text_of(value)).value()
    assert read == value
    assert type(read) is type(value)


def test_a_grid_is_every_combination_once():
    names = [scenario.name for scenario in grid_scenarios([("a", ["1", "2"]), ("b", ["x", "y", "z"])])]
    assert len(set(names)) == 6
    assert names[0] == "a=1, b=x"
    assert names[1] == "a=1, b=y"

"""What each alternative lacks, in words, against the shapes that were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from planner.candidates.alternatives import ranked_alternatives
from planner.candidates.menu import Menu, build_menu
from planner.plan.shape import Degrees, Shape
from planner.problem.load import load_problem

PROBLEMS = Path(__file__).parents[2] / "problems"
LOAD = 64.0


@cache
def menu() -> Menu:
    return build_menu(load_problem(str(PROBLEMS / "two_node_h100.yaml")))


def variant(degrees: Degrees, capacity: float, tpot: float, price: float | None = None) -> Shape:
    shape = menu().shapes[0]
    times = replace(shape.times, tpot=tpot)
    return replace(shape, degrees=degrees, capacity=capacity, times=times, price=3.0 * degrees.gpus if price is None else price)


def reasons(chosen: Sequence[Shape], *others: Shape, free: int = 16) -> dict[str, str]:
    asked = replace(menu(), shapes=(*chosen, *others), loads=(LOAD,))
    return {str(one.shape.degrees): one.reason for one in ranked_alternatives(asked, chosen, "cost", [free])}


FOUR, EIGHT, LONG = Degrees(4), Degrees(8), Degrees(8, 2)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (variant(LONG, 70.0, 0.040), "faster by 10.0 ms a token, less room: 109% of the load instead of 125%"),
        (variant(LONG, 80.0, 0.060), "slower by 10.0 ms a token"),
        (variant(LONG, 80.0, 0.050), "as good: the plan communicates less or keeps more domains whole"),
        (variant(LONG, 40.0, 0.050), "needs 32 GPUs, 16 are free"),
        (variant(FOUR, 20.0, 0.050, price=14.0), "dearer: 16 GPUs at a higher price"),
        (variant(LONG, 64.0, 0.050, price=40.0), "cheaper alone, but not beside the others"),
    ],
)
def test_the_reason_names_what_the_plan_has(other, reason):
    assert reasons([variant(EIGHT, 40.0, 0.050)] * 2, other) == {str(other.degrees): reason}


def test_without_a_plan_an_alternative_is_possible_by_itself():
    assert reasons([], variant(EIGHT, 64.0, 0.050)) == {str(EIGHT): "possible by itself"}


def test_where_the_most_load_is_asked_an_alternative_fills_its_pool():
    """Money is no reason then: what matters is how much of the load each serves by itself."""
    asked = replace(menu(), shapes=(variant(EIGHT, 40.0, 0.050), variant(LONG, 70.0, 0.050)), loads=(LOAD,))
    (other,) = ranked_alternatives(asked, [variant(EIGHT, 40.0, 0.050)] * 2, "throughput", [16])
    assert (other.replicas, other.gpus) == (1, 16)
    assert other.reason == "serves 1.094 times the load alone, the plan 1.25 times"

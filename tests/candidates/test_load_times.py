"""Times at the batch that the load makes: what each shape of a menu says beside its times at its own batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from planner.candidates.load_times import alone_batch
from planner.candidates.menu import build_menu
from planner.plan.shape import Degrees
from planner.problem.load import load_problem

PROBLEM = str(Path(__file__).parents[2] / "problems" / "two_node_h100.yaml")
TP8 = Degrees(8)


def shapes_of(*overrides: str):
    return build_menu(load_problem(PROBLEM, overrides)).shapes


def of_rate(rate: str):
    return shapes_of("deployments.chat.workload.concurrency=null", f"deployments.chat.workload.request_rate={rate}")


def test_a_replica_that_carries_the_whole_rate_holds_fewer_sequences():
    full = next(shape for shape in of_rate("100/s") if shape.degrees == TP8)
    half = full.capacity / 2
    assert full.load_tpot is None
    assert alone_batch(full, full.capacity) == alone_batch(full, 3 * full.capacity) == full.batch
    assert alone_batch(full, half) == -(-full.batch // 2)
    low = next(shape for shape in of_rate(f"{half / 512}/s") if shape.degrees == TP8)
    assert low.times == full.times
    assert low.load_tpot is not None
    # The same batch asked for as a concurrency.
    held = next(shape for shape in shapes_of(f"deployments.chat.workload.concurrency={alone_batch(full, half)}") if shape.degrees == TP8)
    assert low.load_tpot == pytest.approx(held.times.tpot, rel=1e-12)


def test_relief_is_the_slope_to_two_thirds_of_the_batch():
    shapes = shapes_of("deployments.chat.workload.concurrency=51")
    (told,) = [shape for shape in shapes if shape.relief is not None]
    assert told.degrees == TP8
    assert told.batch == 51
    part = next(shape for shape in shapes_of("deployments.chat.workload.concurrency=34") if shape.degrees == TP8)
    assert told.relief == pytest.approx(2 * (told.times.tpot - part.times.tpot), rel=1e-12)


def test_one_shape_of_every_pool_and_format_tells_its_relief():
    menu = build_menu(load_problem(str(Path(PROBLEM).parent / "mixed_fleet.yaml")))
    told = Counter((shape.deployment, shape.pool, shape.weights_dtype, shape.kv_dtype) for shape in menu.shapes if shape.relief is not None)
    assert set(told.values()) == {1}
    assert {key[0] for key in told} == {0, 1, 2}


def test_a_single_sequence_has_no_relief():
    assert all(shape.relief is None for shape in shapes_of("deployments.chat.workload.concurrency=1"))


def test_where_most_is_to_be_served_every_replica_is_full():
    found = shapes_of("objective=throughput", "deployments.chat.workload.concurrency=null", "deployments.chat.workload.request_rate=1/s")
    assert found
    assert all(shape.load_tpot is None for shape in found)

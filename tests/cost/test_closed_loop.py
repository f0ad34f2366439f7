"""Shapes asked together, in any order and beside shapes alike, have the times that each has alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.catalog.step_times import step_constants
from planner.cost.alike import alike
from planner.cost.closed_loop import Step, step_times
from planner.cost.evaluation import evaluate, prepared
from planner.cost.setting import ShapeArrays, TimesTable
from tests.cost.conftest import make_setting, paths

MODELS = ("llama-3.1-8b", "gpt-oss-20b", "deepseek-v3")
DEGREES = st.tuples(
    st.sampled_from([1, 2, 3, 4, 8]),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([1, 2, 4, 16]),
    st.integers(1, 700),
    st.integers(0, 4),
)


def setting_of(name, **more):
    """A setting whose leaf and spine are joined alike and whose fabric is not."""
    leaf = paths(gpu("h100-sxm-80gb"))[2]
    levels = (
        *paths(gpu("h100-sxm-80gb")),
        replace(leaf, level="spine", hops=6),
        replace(leaf, level="fabric", hops=6, bandwidth=leaf.bandwidth / 4, peer_bandwidth=leaf.peer_bandwidth / 4),
    )
    return make_setting(model(name), paths=levels, **more)


def shapes_of(rows):
    """Shapes of (t, p, experts spread, dp, batch, level of the replica); what is wider than a server lies in a leaf at least."""
    t, p, spread, dp, batch, far = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    stage = t * dp
    level = np.where(stage > 8, 2, np.where(stage > 1, 1, 0))
    across = np.maximum(np.where(p > 1, np.maximum(far, 1), 0), level)
    return ShapeArrays(t, p, np.where(spread > 0, stage, 1), dp, batch, np.where(t > 1, 1, 0), level, np.maximum(-(-stage // 8), 1), across)


def assert_same(found: TimesTable, expected: TimesTable, rows):
    for name in TimesTable.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name)[rows], err_msg=name)


@settings(max_examples=10, deadline=None)
@given(name=st.sampled_from(MODELS), rows=st.lists(DEGREES, min_size=1, max_size=12), profile=st.sampled_from(["calibrated", "hockney"]))
def test_shapes_asked_together_have_the_times_of_each_alone(name, rows, profile):
    setting, shapes = setting_of(name, profile=profile), shapes_of(rows)
    together = evaluate(setting, shapes)
    for row in range(len(rows)):
        assert_same(evaluate(setting, shapes.at(np.array([row]))), together, [row])


@settings(max_examples=10, deadline=None)
@given(name=st.sampled_from(MODELS), rows=st.lists(DEGREES, min_size=1, max_size=10), draw=st.randoms(use_true_random=False))
def test_prepared_shapes_may_be_asked_in_any_order_and_often(name, rows, draw):
    setting, shapes = setting_of(name), shapes_of(rows)
    asked = np.array([draw.randrange(len(rows)) for _ in range(20)])
    batch = np.array([draw.randrange(1, 900) for _ in asked])
    found = prepared(setting, shapes).at(asked, batch)
    assert_same(found, evaluate(setting, replace(shapes.at(asked), batch=batch)), np.arange(20))


@settings(max_examples=10, deadline=None)
@given(name=st.sampled_from(MODELS), rows=st.lists(DEGREES, min_size=2, max_size=20), profile=st.sampled_from(["calibrated", "hockney"]))
def test_shapes_called_alike_have_the_same_times_at_every_batch(name, rows, profile):
    setting, shapes = setting_of(name, profile=profile), shapes_of([(*row[:4], 40, row[5]) for row in rows])
    sample, where = alike(setting, shapes)
    assert_same(evaluate(setting, shapes), evaluate(setting, shapes.at(sample)), where)


def test_levels_joined_alike_are_told_apart_only_by_what_crosses_them():
    """Pipelines over a leaf and a spine are alike, over the slower fabric not; a replica of one stage crosses nothing."""
    setting = setting_of("llama-3.1-8b")
    piped = shapes_of([(2, 2, 0, 1, 8, level) for level in (1, 2, 3, 4)])
    assert alike(setting, piped)[1].tolist() == [0, 1, 1, 2]
    whole = replace(piped, pipeline_parallel=np.ones(4, dtype=np.int64))
    assert len(alike(setting, whole)[0]) == 1
    slow = evaluate(setting, piped).pp_comm
    assert slow[1] == slow[2] < slow[3]


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_many_workloads_have_the_steps_of_each_alone(name):
    setting, constants = setting_of(name), step_constants("vllm", "hopper")
    shapes = shapes_of([(1, 1, 0, 1, 3, 0), (2, 4, 0, 1, 90, 2), (4, 2, 1, 2, 31, 2), (8, 3, 1, 1, 200, 3), (1, 1, 0, 1, 40, 0)])
    prompts, outputs = np.array([100.0, 3000.0, 700.0, 20000.0, 5.0]), np.array([50.0, 400.0, 1.0, 900.0, 2000.0])
    longest = int(np.argmax(prompts + outputs))
    together = step_times(replace(setting, prompt_tokens=prompts, output_tokens=outputs), shapes, constants)
    for row in (0, longest, 4):  # of one stage, or the longest: layers are cut for the longest sequence
        alone = replace(setting, prompt_tokens=float(prompts[row]), output_tokens=float(outputs[row]))
        step = step_times(alone, shapes.at(np.array([row])), constants)
        for column in Step.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(together, column)[..., row], getattr(step, column)[..., 0], err_msg=column)

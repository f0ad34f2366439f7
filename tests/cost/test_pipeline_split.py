"""Times, memory and plans count the same layers on every stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalog.models import model
from planner.cost import pipeline_split
from planner.cost.memory import memory
from planner.cost.pipeline_split import pipeline_splits, remember_splits
from planner.cost.setting import ShapeArrays
from planner.cost.steps import stage_sorts, stages
from tests.cases.fitting import card, setting_of


def shapes_of(*rows):
    columns = np.array(rows, dtype=np.int64).T
    tensor, pipeline, expert, data, batch = columns
    zeros = np.zeros_like(tensor)
    return ShapeArrays(tensor, pipeline, expert, data, batch, zeros, zeros, zeros + 1, zeros)


@pytest.mark.parametrize("name", ["deepseek-v3", "llama-3.1-70b", "gemma-3-27b", "gpt-oss-120b"])
def test_times_count_the_layers_that_memory_counts(name):
    architecture = model(name)
    setting = setting_of(architecture, card("h200-sxm-141gb"))
    shapes = shapes_of((8, 1, 1, 1, 8), (8, 2, 1, 1, 8), (4, 3, 1, 1, 8), (2, 4, 1, 1, 8), (2, 4, 1, 1, 64))
    splits = memory(setting, shapes).partitions
    assert splits == pipeline_splits(setting, shapes)
    sorts = stage_sorts(setting, shapes)
    for row, split in enumerate(splits):
        counted = [
            (tuple(int(layers[row]) for layers in sort.layers), bool(sort.head[row]), int(sort.stages[row]))
            for sort in sorts
            if sort.stages[row]
        ]
        assert counted == list(stages(architecture, split))
        assert sum(sum(layers) * number for layers, _, number in counted) == architecture.layers
        assert sum(number for _, head, number in counted if head) == 1


def test_a_split_follows_the_room_that_is_left():
    """Little room left beside the weights makes the ends lighter; the split is remembered by what it depends on."""
    setting = setting_of(model("llama-3.1-70b-fp8"), card("l4-24gb"), prompt=1024, kv_cache="bf16")
    shapes = shapes_of((1, 8, 1, 1, 1))
    roomy, tight = (pipeline_splits(replace(setting, gpu_memory_utilization=share), shapes)[0] for share in (0.95, 0.6))
    assert roomy != tight
    assert tight[0] <= roomy[0]
    assert pipeline_splits(replace(setting, gpu_memory_utilization=0.95), shapes)[0] == roomy


@pytest.mark.parametrize("gpu", ["l4-24gb", "h200-sxm-141gb"])
def test_shapes_asked_together_are_split_as_each_alone(gpu, monkeypatch):
    """On the L4 the weights leave room for no sequence at the narrow ones and for some at the wide ones."""
    setting = setting_of(model("llama-3.1-70b"), card(gpu))
    rows = ((1, 2, 1, 1, 1), (8, 16, 1, 1, 1), (1, 1, 1, 1, 1), (4, 3, 1, 1, 1), (8, 7, 1, 1, 1), (1, 3, 1, 1, 1))
    together = pipeline_splits(setting, shapes_of(*rows))
    monkeypatch.setattr(pipeline_split, "_REMEMBERED", {})
    assert together == tuple(pipeline_splits(setting, shapes_of(row))[0] for row in rows)
    assert [len(split) for split in together] == [row[1] for row in rows]


def test_many_settings_are_split_as_each_alone(monkeypatch):
    """Models of as many layers are balanced side by side, whatever the order, and in blocks of few rows."""
    rows = ((1, 2, 1, 1, 1), (2, 16, 1, 1, 1), (4, 3, 1, 1, 1), (1, 1, 1, 1, 1), (2, 5, 1, 1, 1))
    questions = [
        (setting_of(model(name), card(gpu), prompt=prompt), shapes_of(*rows[start:]))
        for start, (name, gpu, prompt) in enumerate(
            [
                ("llama-3.1-70b", "l4-24gb", 1024),
                ("llama-3.1-8b", "h200-sxm-141gb", 512),
                ("llama-3.1-70b-fp8", "l4-24gb", 9000),
                ("gpt-oss-20b", "l4-24gb", 512),
                ("llama-3.1-70b", "l4-24gb", 1024),
            ]
        )
    ]
    monkeypatch.setattr(pipeline_split, "_REMEMBERED", {})
    alone = [pipeline_splits(setting, shapes) for setting, shapes in questions]
    monkeypatch.setattr(pipeline_split, "_REMEMBERED", {})
    monkeypatch.setattr(pipeline_split, "BLOCK", 3)
    remember_splits(questions)
    monkeypatch.setattr(pipeline_split, "_balanced", None)  # nothing is left to balance
    assert alone == [pipeline_splits(setting, shapes) for setting, shapes in questions]


def test_what_is_remembered_is_bounded(monkeypatch):
    setting = setting_of(model("llama-3.1-8b"), card("l4-24gb"))
    monkeypatch.setattr(pipeline_split, "_REMEMBERED", {})
    monkeypatch.setattr(pipeline_split, "MOST_REMEMBERED", 3)
    asked = [(1, stages, 1, 1, 1) for stages in range(2, 7)]
    found = [pipeline_splits(setting, shapes_of(row))[0] for row in asked]
    assert sum(map(len, pipeline_split._REMEMBERED.values())) <= 3
    assert tuple(found) == pipeline_splits(setting, shapes_of(*asked))


def test_more_stages_than_layers_are_one_layer_each():
    architecture = model("llama-3.2-1b")
    setting = setting_of(architecture, card("h100-sxm-80gb"))
    sorts = stage_sorts(setting, shapes_of((1, 2 * architecture.layers, 1, 1, 1)))
    assert sum(float(sort.stages[0]) for sort in sorts) == architecture.layers

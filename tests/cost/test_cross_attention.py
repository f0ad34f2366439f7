"""Layers that attend to images: their cache is the images', whatever the text; without images they are passed by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.candidates.legality.rulebook import violations
from planner.catalog.architecture import Attention, AttentionKind, LayerKind
from planner.catalog.engines import engine
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.decode import attended_tokens
from planner.cost.evaluation import evaluate
from planner.cost.memory import memory
from planner.cost.setting import Precision
from planner.cost.tensors import model_parameters
from planner.diagnostics import errors
from planner.plan.shape import Degrees
from tests.cost.conftest import DENSE, FULL, architecture

SEEING = Attention(AttentionKind.CROSS, heads=64, kv_heads=8, head_dim=128, value_head_dim=128, image_tokens=6404)


def served(images):
    return architecture(
        LayerKind(attention=FULL, feed_forward=DENSE), LayerKind(attention=replace(SEEING, images=images), feed_forward=DENSE)
    )


def test_cache_of_images_by_hand(setting_of, shapes_of):
    # 32 of 64 layers keep 1,024 tokens of text, 32 keep 6,404 of each image, in blocks of 16: 8 heads x 256 elements x 2 B a token and layer.
    for images in (0, 1, 3):
        setting = setting_of(served(images), prompt=896.0, output=128.0)
        held = memory(setting, shapes_of((1, 1, 1, 1, 1), (4, 1, 1, 1, 1), (16, 1, 1, 1, 1))).kv_per_sequence
        blocks = -(-6404 * images // 16) * 16
        assert held[0] == 32 * (1024 + blocks) * 8 * 256 * 2
        np.testing.assert_allclose(held[1:], held[0] / np.array([4.0, 8.0]))  # eight kv heads, repeated beyond


def test_a_longer_text_reads_no_more_of_the_images():
    np.testing.assert_array_equal(attended_tokens(replace(SEEING, images=2), np.array([1.0, 1e6])), [12808.0, 12808.0])


def test_more_images_take_more_time(setting_of, shapes_of):
    times = [evaluate(setting_of(served(images)), shapes_of((4, 1, 1, 1, 32))) for images in (1, 2, 8)]
    assert times[0].tpot[0] < times[1].tpot[0] < times[2].tpot[0]
    assert times[0].prefill_compute[0] < times[1].prefill_compute[0] < times[2].prefill_compute[0]


def test_without_images_the_model_is_its_text_layers(setting_of, shapes_of):
    shapes = shapes_of((1, 1, 1, 1, 8), (8, 1, 1, 1, 8))
    text = architecture(LayerKind(attention=FULL, feed_forward=DENSE), layers=32)
    passed_by, alone = (evaluate(setting_of(target), shapes) for target in (served(0), text))
    # What every sequence costs the host goes by all layers of the model.
    assert (passed_by.tpot >= alone.tpot).all()
    np.testing.assert_allclose(passed_by.compute, alone.compute, rtol=0.01)
    np.testing.assert_allclose(passed_by.tp_comm, alone.tp_comm, rtol=0.01)


@pytest.mark.parametrize(("name", "version", "right"), [("vllm", "0.10", True), ("vllm", "0.12", False), ("sglang", None, True)])
def test_versions_that_serve_no_such_model_are_told(name, version, right):
    target, precision = model("llama-3.2-11b-vision"), Precision("bf16", "bf16", "bf16")
    found = errors(violations(target, precision, engine(name, version), gpu("h100-sxm-80gb"), Degrees(2)))
    assert ["CROSS_ATTENTION_NOT_SERVED"] * (not right) == [item.code for item in found]
    assert not errors(violations(model("qwen2.5-vl-7b"), precision, engine(name, version), gpu("h100-sxm-80gb"), Degrees(2)))


def test_published_towers_of_tiles_are_counted_whole():
    # 10,670,220,835 and 88.59 x 10^9 parameters in the published checkpoints, of which the text part is 9.775 and 87.667.
    for name, total in (("llama-3.2-11b-vision", 10.6702), ("llama-3.2-90b-vision", 88.59)):
        assert (model_parameters(model(name)) + model(name).vision.parameters) / 1e9 == pytest.approx(total, rel=5e-4)

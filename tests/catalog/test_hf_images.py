"""Configs of models with layers that attend to images."""

from __future__ import annotations

import pytest

from planner.catalog.hf_config import read_hf_config
from planner.diagnostics import PlannerError
from tests.catalog.tiny import BASE

MLLAMA = {
    "model_type": "mllama",
    "text_config": {**BASE, "model_type": "mllama_text_model", "cross_attention_layers": [1, 3]},
    "vision_config": {
        "attention_heads": 16,
        "num_hidden_layers": 32,
        "num_global_layers": 8,
        "hidden_size": 1280,
        "intermediate_size": 5120,
    }
    | {"image_size": 560, "patch_size": 14, "max_num_tiles": 4},
}


def test_layers_that_attend_to_images():
    architecture = read_hf_config(MLLAMA, "tiny", "written for this test")
    assert architecture.looks_at_images
    assert [architecture.layer(index).attention.kind for index in range(4)] == ["full", "cross", "full", "cross"]
    # A tile of 560 / 14 = 40 x 40 patches and one token of the whole; four tiles an image.
    assert architecture.layer(1).attention.cross_tokens == 4 * (40 * 40 + 1)
    assert architecture.layer(0).attention.cross_tokens == 0
    assert architecture.vision.parameters == (32 + 8) * (4 * 1280**2 + 2 * 1280 * 5120)


@pytest.mark.parametrize(
    ("part", "changes", "needle"),
    [
        ("text_config", {"cross_attention_layers": [1, 4]}, "names layers beyond the 4"),
        ("text_config", {"cross_attention_layers": None}, "cross_attention_layers"),
        ("text_config", {"cross_attention_layers": ["a"]}, "not a whole number"),
        ("vision_config", {"image_size": 0}, "outside 1..65536"),
        ("vision_config", {"patch_size": 1000}, "larger than image_size"),
        ("vision_config", {"image_size": None}, "vision_config.image_size"),
    ],
)
def test_images_that_cannot_be_counted_are_refused(part, changes, needle):
    with pytest.raises(PlannerError, match=needle):
        read_hf_config({**MLLAMA, part: {**MLLAMA[part], **changes}}, "tiny", "written for this test")

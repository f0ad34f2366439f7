"""Layers over compressed tokens (DeepSeek-V4), read from configs that are whole, abridged and wrong."""

from __future__ import annotations

import pytest

from planner.catalog.architecture import AttentionKind
from planner.catalog.hf_config import read_hf_config
from planner.catalog.models import model, same_model
from planner.catalog.read import read_table
from planner.diagnostics import PlannerError
from planner.problem.companions import prediction_layers

FLASH = read_table("models/deepseek-v4-flash.json")["config"]


def read(**changes):
    return read_hf_config({**FLASH, **changes}, "v4", "written for this test")


def test_every_layer_has_the_rate_that_the_list_gives_it():
    flash, pro = model("deepseek-v4-flash"), model("deepseek-v4-pro")
    assert [flash.layer(index).attention.compress_ratio for index in (0, 1, 2, 3, 42)] == [0, 0, 4, 128, 4]
    assert [pro.layer(index).attention.compress_ratio for index in (0, 1, 2, 3, 60)] == [128, 128, 4, 128, 4]
    counts = {ratio: sum(flash.layer(index).attention.compress_ratio == ratio for index in range(flash.layers)) for ratio in (0, 4, 128)}
    assert counts == {0: 2, 4: 21, 128: 20}
    assert flash.compressed
    assert not model("deepseek-v3").compressed


def test_what_a_layer_is_made_of():
    indexed, plain = model("deepseek-v4-pro").layer(2), model("deepseek-v4-pro").layer(3)
    attention = indexed.attention
    assert (attention.kind, attention.heads, attention.kv_heads, attention.head_dim) == (AttentionKind.COMPRESSED, 128, 1, 512)
    assert (attention.window, attention.q_lora_rank, attention.output_groups, attention.output_lora_rank) == (128, 1536, 16, 1024)
    assert (attention.nope_head_dim, attention.rope_head_dim) == (448, 64)
    assert (attention.index_heads, attention.index_head_dim, attention.index_topk, attention.overlaps) == (64, 128, 1024, True)
    assert (plain.attention.index_heads, plain.attention.index_topk, plain.attention.overlaps) == (None, None, False)
    assert (indexed.mixed_streams, indexed.feed_forward.experts, indexed.feed_forward.shared_width) == (4, 384, 3072)


def test_the_first_layers_look_their_experts_up():
    flash = model("deepseek-v4-flash")
    assert [flash.layer(index).feed_forward.routing_table for index in range(4)] == [129_280, 129_280, 129_280, 0]
    assert all(read(num_hash_layers=0).layer(index).feed_forward.routing_table == 0 for index in range(43))


def test_a_prediction_layer_has_a_window_alone():
    own = prediction_layers(model("deepseek-v4-flash"))
    assert (own.layers, own.layer(0).attention.compress_ratio, own.layer(0).feed_forward.routing_table) == (1, 0, 0)
    assert own.layer(0) is not model("deepseek-v4-flash").layer(42)
    assert prediction_layers(model("deepseek-v3")).layer(0) == model("deepseek-v3").layer(60)


def test_a_list_without_the_prediction_layer_is_whole():
    assert read(compress_ratios=FLASH["compress_ratios"][:-1]) == read()
    assert read(num_nextn_predict_layers=0, compress_ratios=FLASH["compress_ratios"][:-1]).layers == 43


def test_checkpoints_of_one_model_differ_in_their_formats_only():
    assert same_model(model("deepseek-v4-flash-fp8"), model("deepseek-v4-flash"))
    assert same_model(model("deepseek-v4-pro-nvfp4"), model("deepseek-v4-pro"))
    assert not same_model(model("deepseek-v4-flash"), model("deepseek-v4-pro"))


@pytest.mark.parametrize("field", ["compress_ratios", "o_groups", "o_lora_rank", "hc_mult", "num_hash_layers", "head_dim", "q_lora_rank"])
def test_a_missing_field_is_named(field):
    with pytest.raises(PlannerError, match=rf"lacks a field .*{field}"):
        read(**{field: None})


@pytest.mark.parametrize(
    ("changes", "needle"),
    [
        ({"compress_ratios": [0, 4]}, "has 2 items for 43 layers"),
        ({"compress_ratios": [*FLASH["compress_ratios"][:-1], 2]}, "rates that are not modelled: 2"),
        ({"compress_ratios": [1] * 44}, "rates that are not modelled: 1"),
        ({"compress_ratios": {"0": 3}}, "not a list"),
        ({"o_groups": 7}, "does not divide the 64"),
        ({"qk_rope_head_dim": 1024}, "exceeds head_dim 512"),
    ],
)
def test_what_cannot_be_right_is_told(changes, needle):
    with pytest.raises(PlannerError, match=needle.replace("(", r"\(")):
        read(**changes)

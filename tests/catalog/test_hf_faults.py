"""Configs that cannot be used: every fault at once, always a PlannerError, never a guess."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.hf_config import read_hf_config
from planner.catalog.hf_config.families import FAMILIES
from planner.catalog.models import model_names
from planner.catalog.read import read_table
from planner.diagnostics import PlannerError

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}


def faults(config):
    with pytest.raises(PlannerError) as caught:
        read_hf_config(config, "tiny", "written for this test")
    return caught.value.diagnostics


@pytest.mark.parametrize(
    "field",
    ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size", "max_position_embeddings", "model_type"],
)
def test_a_missing_field_is_named(field):
    (fault,) = faults({key: value for key, value in LLAMA.items() if key != field})
    assert fault.code == "MODEL_NOT_UNDERSTOOD"
    assert field in fault.message


def test_all_missing_fields_are_named_at_once():
    (fault,) = faults({"model_type": "llama"})
    for field in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size", "max_position_embeddings"):
        assert field in fault.message


@pytest.mark.parametrize(
    "field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size"]
)
@pytest.mark.parametrize("value", [0, -1, 10**12, 1.5, math.nan, math.inf, "32", True, [32], {"a": 1}])
def test_absurd_numbers_and_wrong_types_name_the_field(field, value):
    found = faults({**LLAMA, field: value})
    assert any(fault.place is not None and fault.place.path == field for fault in found)


def test_several_wrong_values_are_told_together():
    found = faults({**LLAMA, "hidden_size": "big", "vocab_size": -5, "tie_word_embeddings": "yes", "torch_dtype": "float13"})
    assert {fault.place.path for fault in found} == {"hidden_size", "vocab_size", "tie_word_embeddings", "torch_dtype"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"num_attention_heads": 33}, "num_attention_heads"),
        ({"num_key_value_heads": 7}, "num_key_value_heads"),
        ({"layer_types": ["full_attention"] * 31}, "layer_types"),
        ({"layer_types": "full_attention"}, "layer_types"),
        ({"num_local_experts": 4, "num_experts_per_tok": 5, "moe_intermediate_size": 8}, "num_experts_per_tok"),
        ({"quantization_config": "fp8"}, "quantization_config"),
        ({"vision_config": 3}, "vision_config"),
        ({"text_config": []}, "text_config"),
    ],
)
def test_values_that_do_not_fit_together(changes, field):
    assert any(field in str(fault) for fault in faults({**LLAMA, **changes}))


@pytest.mark.parametrize(
    ("changes", "needle"),
    [
        ({"model_type": "llamma"}, "nearest: llama"),
        ({"model_type": "my_new_thing", "wave_mixers": 8}, "my_new_thing"),
        ({"model_type": "mimo_v2_flash", "sliding_window": 128}, "hybrid_layer_pattern"),
        ({"model_type": "step3p7", "sliding_window": 128}, "layer_types"),
        ({"model_type": "deepseek_v3"}, "kv_lora_rank"),
        ({"model_type": "deepseek_v4"}, "compress_ratios, o_lora_rank, o_groups, hc_mult, num_hash_layers"),
        ({"compress_ratios": [0, 4]}, "attention over compressed tokens"),
        ({"model_type": "nemotron-nas"}, "block_configs"),
        ({"model_type": "nemotron_h"}, "hybrid_override_pattern"),
        ({"model_type": "qwen3_5_text"}, "linear_num_value_heads"),
        ({"model_type": "kimi_linear", "linear_attn_config": {"num_heads": 4}}, "linear_attn_config.full_attn_layers"),
        ({"cross_attention_layers": [3, 8]}, "cross-attention"),
        ({"model_type": "mllama"}, "cross_attention_layers, vision_config"),
        ({"is_encoder_decoder": True}, "encoder"),
        (
            {"model_type": "t5", "d_model": 1024, "num_layers": 24},
            "'t5', an encoder beside a decoder; models that are a decoder alone can be planned",
        ),
        ({"model_type": "whisper", "is_encoder_decoder": True}, "an encoder beside a decoder"),
        ({"model_type": "gemma4_text", "num_kv_shared_layers": 10}, "share one KV cache"),
    ],
)
def test_what_is_not_understood_says_why(changes, needle):
    found = faults({**LLAMA, **changes})
    assert needle in "\n".join(map(str, found))
    assert any(fault.code == "MODEL_NOT_UNDERSTOOD" for fault in found)


@pytest.mark.parametrize("config", [[], "llama", None, 3, {}])
def test_not_a_config_at_all(config):
    assert faults(config)


def test_whole_floats_are_numbers():
    assert read_hf_config({**LLAMA, "hidden_size": 4096.0}, "tiny", "test").hidden_size == 4096


def test_a_million_keys_of_no_meaning_change_nothing():
    plain = read_hf_config(LLAMA, "tiny", "test")
    assert read_hf_config({**LLAMA, **{f"key_{index}": index for index in range(10_000)}}, "tiny", "test") == plain


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**13), 10**13),
    st.integers(-2, 80),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=12),
    st.sampled_from(["fp8", "awq", "modelopt", "NVFP4", "MIXED_PRECISION", "auto", "M*E-", "full_attention", "mamba", "group", "1,2"]),
)
JUNK = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=12), inner, max_size=5)), max_leaves=12
)
KEYS = sorted(
    {key for name in model_names() for key in read_table(f"models/{name}.json")["config"]}
    | {"layers_block_type", "block_configs", "moe_layers", "moe_layers_enum"}
)


def read_or_refuse(config):
    try:
        found = read_hf_config(config, "junk", "random")
    except PlannerError as error:
        codes = {fault.code for fault in error.diagnostics}
    else:
        codes = None
    if codes is not None:
        assert codes
        assert codes <= {"MODEL_NOT_UNDERSTOOD", "MODEL_CONFIG_INVALID"}
        return
    assert isinstance(found, ModelArchitecture)
    assert all(kind.attention is None or kind.attention.heads % kind.attention.kv_heads == 0 for kind in found.layer_kinds)


def test_a_stand_in_for_a_fault_makes_no_further_faults():
    assert len(faults({**LLAMA, "hidden_size": "big"})) == 1
    assert len(faults({**LLAMA, "num_hidden_layers": 0, "layer_types": ["full_attention"] * 32})) == 1


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), JUNK, max_size=25), st.sampled_from(sorted(FAMILIES)))
def test_junk_under_real_keys_is_read_or_refused(config, family):
    read_or_refuse({**config, "model_type": family})


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_real_configs_with_some_values_replaced_are_read_or_refused(data):
    config = copy.deepcopy(read_table(f"models/{data.draw(st.sampled_from(model_names()))}.json")["config"])
    for key in data.draw(st.lists(st.sampled_from(sorted(config)), max_size=4, unique=True)):
        nested = config[key]
        if isinstance(nested, dict) and nested and data.draw(st.booleans()):
            nested[data.draw(st.sampled_from(sorted(nested)))] = data.draw(JUNK)
        else:
            config[key] = data.draw(JUNK)
    read_or_refuse(config)


@settings(max_examples=40, deadline=None)
@given(JUNK)
def test_anything_at_all_is_refused_or_read(config):
    read_or_refuse(config)

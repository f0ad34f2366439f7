from __future__ import annotations

import pytest

from planner.catalog.hf_config import read_hf_config
from planner.catalog.hf_config.excluded import family_of
from planner.catalog.models import model
from planner.catalog.read import read_table
from planner.diagnostics import PlannerError
from tests.catalog.tiny import SIZES

BASE = {**SIZES, "model_type": "llama"}


def quantization(scheme=None, sidecar=None):
    config = {**BASE, "quantization_config": scheme, "hf_quant_config": sidecar}
    return read_hf_config(config, "tiny", "written for this test").quantization


def compressed(weights, **more):
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}}, **more}


@pytest.mark.parametrize(
    ("scheme", "weights", "block", "group", "scale"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", (128, 128), None, 4.0),
        ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8", None, None, 0.0),
        ({"quant_method": "fbgemm_fp8"}, "fp8", None, None, 0.0),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, "int4", None, 128, 2.5),
        ({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": False}, "int4", None, 64, 2.0),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "int4", None, 128, 2.5),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8", None, None, 3.0),
        ({"quant_method": "mxfp4"}, "mxfp4", None, 32, 1.0),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", None, 16, 1.0),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8", None, None, 0.0),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4", None, 64, 4.0),
        (compressed({"num_bits": 8, "type": "float", "strategy": "channel"}), "fp8", None, None, 0.0),
        (compressed({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}), "fp8", (128, 128), None, 4.0),
        (compressed({"num_bits": 8, "type": "int", "strategy": "channel"}), "int8", None, None, 0.0),
        (compressed({"num_bits": 4, "type": "int", "group_size": 32, "symmetric": True}), "int4", None, 32, 2.0),
        (compressed({"num_bits": 4, "type": "float", "group_size": 16}), "nvfp4", None, 16, 1.0),
        (compressed({"num_bits": 4, "type": "float", "group_size": 32}), "mxfp4", None, 32, 1.0),
    ],
)
def test_schemes(scheme, weights, block, group, scale):
    found = quantization(scheme)
    assert (found.weights, found.block, found.group, found.scale_bytes) == (weights, block, group, scale)


@pytest.mark.parametrize(
    ("sidecar", "cache"),
    [
        ({"quant_algo": "NVFP4", "group_size": 16, "kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"producer": {}, "quantization": {"quant_algo": "NVFP4", "group_size": 16, "kv_cache_quant_algo": None}}, None),
    ],
)
def test_the_sidecar_of_modelopt_flat_and_as_the_file_has_it(sidecar, cache):
    found = quantization(sidecar=sidecar)
    assert (found.weights, found.group, found.kv_cache) == ("nvfp4", 16, cache)


def test_kv_cache_of_a_checkpoint():
    scheme = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"}}
    assert quantization(scheme).kv_cache == "fp8"
    assert quantization({"quant_algo": "FP8", "kv_cache_scheme": "FP8"}).kv_cache == "fp8"


@pytest.mark.parametrize(
    ("module", "family"),
    [
        ("lm_head", "head"),
        ("model.embed_tokens", "embedding"),
        ("re:.*mlp.gate$", "router"),
        ("model.layers.*.mlp.router", "router"),
        ("re:.*self_attn.*", "attention"),
        ("model.layers.3.self_attn", "attention"),
        ("re:.*shared_experts.*", "shared_expert"),
        ("model.layers.*.mlp.experts", "expert"),
        ("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "mlp"),
        ("model.layers.0.linear_attn", "recurrent"),
        ("visual.blocks.0.attn", ""),
    ],
)
def test_modules_by_family(module, family):
    assert family_of(module) == family


def test_a_pattern_keeps_a_family_everywhere_and_a_single_layer_its_own():
    whole = quantization({"quant_method": "fp8", "ignored_layers": ["re:.*self_attn.*"]})
    assert "attention" in whole.kept_high
    every = quantization({"quant_method": "fp8", "ignored_layers": [f"model.layers.{index}.mlp" for index in range(4)]})
    assert "mlp" in every.kept_high
    few = read_hf_config({**BASE, "quantization_config": {"quant_method": "fp8", "ignored_layers": ["model.layers.0.mlp"]}}, "tiny", "test")
    assert "mlp" not in few.quantization.kept_high
    assert any("1 of 4 layers" in note for note in few.notes)
    assert [few.layer(index).kept_high for index in range(4)] == [("mlp",), (), (), ()]
    outside = read_hf_config(
        {**BASE, "quantization_config": {"quant_method": "fp8", "ignored_layers": ["model.layers.9.mlp"]}}, "tiny", "test"
    )
    assert len(outside.layer_kinds) == 1


def test_gpt_oss_quantizes_its_experts_only():
    assert "attention" in model("gpt-oss-120b").quantization.kept_high
    assert "expert" not in model("gpt-oss-120b").quantization.kept_high


@pytest.mark.parametrize(
    ("scheme", "needle"),
    [
        ({"quant_method": "awq", "bits": 4}, "quantization_config.group_size"),
        ({"quant_method": "gptq", "group_size": 128}, "quantization_config.bits"),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "only 4 and 8"),
        ({"quant_method": "compressed-tensors"}, "quantization_config.config_groups"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "quantization_config.quantized_layers"),
        ({"quant_method": "modelopt", "quant_algo": "W2A2"}, "W2A2"),
        ({"quant_method": "hqq"}, "hqq"),
        ({}, "quantization_config.quant_method"),
        ({"quant_method": "fp8", "weight_block_size": [0, 128]}, "weight_block_size"),
        ({"quant_method": "fp8", "weight_block_size": "128"}, "weight_block_size"),
        (compressed({"type": "int"}), "num_bits"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": "FP6"}, "kv_cache_scheme"),
    ],
)
def test_what_is_missing_or_unknown_is_named(scheme, needle):
    with pytest.raises(PlannerError, match=needle):
        quantization(scheme)


def mixed(layers):
    return quantization({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers})


def test_mixed_precision_counts_where_all_modules_turn_out_alike():
    layers = {"model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4"}, "model.layers.1.mlp.up_proj": {"quant_algo": "NVFP4"}}
    assert (mixed(layers).weights, mixed(layers).apart) == ("nvfp4", ())


def test_mixed_precision_counts_by_families_of_tensors():
    layers = {f"model.layers.{index}.mlp.{name}_proj": {"quant_algo": "NVFP4"} for index in range(2) for name in ("gate", "up", "down")}
    layers |= {"model.layers.0.self_attn": {"quant_algo": "FP8"}, "lm_head": {"quant_algo": "FP8"}}
    found = mixed(layers)
    assert (found.weights, found.group, found.formats) == ("nvfp4", 16, ("nvfp4", "fp8"))
    assert (found.of("mlp").weights, found.of("attention").weights) == ("nvfp4", "fp8")
    assert {"recurrent", "expert", "head"} <= set(found.kept_high)
    assert not {"mlp", "attention"} & set(found.kept_high)


def test_a_family_in_two_formats_is_refused():
    layers = {"model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4"}, "model.layers.1.mlp.up_proj": {"quant_algo": "FP8"}}
    with pytest.raises(PlannerError, match="gives mlp several number formats"):
        mixed(layers)
    with pytest.raises(PlannerError, match="holds W4A8"):
        mixed({"model.layers.0.mlp.up_proj": {"quant_algo": "W4A8"}})


@pytest.mark.parametrize(
    ("changes", "experts"),
    [
        ({}, "mxfp4"),
        ({"expert_dtype": None}, "mxfp4"),
        ({"expert_dtype": "fp8"}, "fp8"),
        ({"model_type": "deepseek_ref", "expert_dtype": None}, "fp8"),
    ],
)
def test_the_experts_of_deepseek_v4_have_a_format_of_their_own(changes, experts):
    config = {**read_table("models/deepseek-v4-flash.json")["config"], **changes}
    found = read_hf_config(config, "v4", "test").quantization
    assert (found.weights, found.block, found.of("attention").weights, found.of("expert").weights) == ("fp8", (128, 128), "fp8", experts)
    assert model("deepseek-v4-pro-nvfp4").quantization.of("expert").group == 16


@pytest.mark.parametrize("changes", [{"expert_dtype": "int4"}, {"quantization_config": {"quant_method": "fp8", "moe_quant_algo": "W2A2"}}])
def test_other_formats_of_its_experts_are_refused(changes):
    config = {**read_table("models/deepseek-v4-flash.json")["config"], **changes}
    with pytest.raises(PlannerError, match="expert_dtype"):
        read_hf_config(config, "v4", "test")

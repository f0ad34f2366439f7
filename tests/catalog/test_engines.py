from __future__ import annotations

import re

import pytest

from planner.catalog.architecture import Quantization
from planner.catalog.engine_choice import engine_for, version_for
from planner.catalog.engines import _tables, engine, engine_names, engines, matches, version_key
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.diagnostics import PlannerError

RULES = {
    "heads",
    "kv_heads",
    "vocabulary",
    "fp8_block",
    "quantization_group",
    "microscaling",
    "kernel_tile",
    "experts",
    "compressed_attention",
    "output_groups",
    "recurrent_groups",
    "vision_heads",
    "dtype",
    "layers",
    "attention_dp",
    "cross_attention",
    "speculation",
    "speculation_stages",
}


def test_known_engines():
    assert engine_names() == ("vllm", "sglang", "tensorrt-llm")
    assert [facts.title for facts in engines()] == ["vLLM", "SGLang", "TensorRT-LLM"]


@pytest.mark.parametrize("name", ["vllm", "vLLM", "trtllm", "trt-llm", "TensorRT-LLM", "tensorrt_llm", "sgl"])
def test_names_as_people_write_them(name):
    assert engine(name).name in engine_names()


@pytest.mark.parametrize("name", ["vllm 0.7.2", "vllm==0.7.2", "vllm@0.7.2"])
def test_a_name_may_carry_its_version(name):
    assert engine(name) == engine("vllm", "0.7.2")


def test_an_unknown_engine_is_refused_with_the_nearest():
    with pytest.raises(PlannerError) as caught:
        engine("vlm")
    assert caught.value.diagnostics[0].code == "UNKNOWN_ENGINE"
    assert "vllm" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("version", "bounds", "held"),
    [
        ("0.9.1", ">=0.9,<0.17", True),
        ("0.9", ">=0.9", True),
        ("0.9.0", "==0.9", True),
        ("0.17", "<0.17", False),
        ("0.10", "<0.9", False),
        ("0.5.0rc1", "<0.5.6", True),
        ("v1.0", ">=1.0", True),
        ("0.19+pr39046", "+pr39046", True),
        ("0.19+pr39046", ">=0.9,+pr39046", True),
        ("0.19", "+pr39046", False),
        ("0.12", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version, bounds, held):
    assert matches(version, bounds) is held


def test_version_numbers_are_not_text():
    assert version_key("0.10") > version_key("0.9")
    assert version_key("1.0") == version_key("1")


@pytest.mark.parametrize("name", engine_names())
def test_every_entry_has_a_source_and_readable_bounds(name):
    row = _tables()[name]
    assert row["source"]
    assert row["constants_source"]
    for part in ("changes", "rules", "formats", "padding", "tiles"):
        for entry in row.get(part, ()):
            assert entry["source"], (part, entry)
            for bound in filter(None, entry.get("versions", "").split(",")):
                assert re.fullmatch(r"\+\w+|(>=|<=|<|>|==)\d+(\.\d+)*", bound.strip()), bound


@pytest.mark.parametrize("name", engine_names())
@pytest.mark.parametrize("version", ["0.1", None, "99"])
def test_every_version_has_every_rule(name, version):
    facts = engine(name, version)
    assert {rule.rule for rule in facts.rules} == RULES
    assert {rule.effect for rule in facts.rules} <= {"error", "warning", "none"}


@pytest.mark.parametrize("name", engine_names())
def test_terms_of_memory_are_ordered(name):
    facts = engine(name)
    for low, expected, high in (facts.graphs, facts.context, facts.communicator):
        assert 0 <= low <= expected <= high
    assert facts.activation_low <= 1.0 <= facts.activation_high


def test_large_gpus_get_higher_defaults():
    facts = engine("vllm")
    assert facts.sequences(gpu("h100-sxm-80gb")) == 1024
    assert facts.batched_tokens(gpu("h100-sxm-80gb")) == 8192
    assert facts.sequences(gpu("a100-sxm-80gb")) == 256
    assert facts.batched_tokens(gpu("l4-24gb")) == 2048


def test_kv_cache_follows_the_checkpoint_only_where_the_engine_does():
    checkpoint = model("llama-3.1-70b-fp8")
    assert checkpoint.quantization.kv_cache == "fp8"
    assert engine("tensorrt-llm").kv_cache_dtype(checkpoint) == "fp8"
    assert engine("vllm").kv_cache_dtype(checkpoint) == "bf16"


def test_changes_hold_for_their_versions_only():
    assert engine("vllm", "0.7.2").pipeline_split == "last"
    assert engine("vllm", "0.8").pipeline_split == "middle"
    assert engine("vllm", "0.16").sampler_bytes > engine("vllm", "0.17").sampler_bytes
    assert engine("vllm", "0.5").sliding_window == "full"
    assert engine("sglang", "0.5.6").pipeline_split == "first"
    assert engine("sglang", "0.5.7").pipeline_split == "end"


@pytest.mark.parametrize("name", engine_names())
def test_a_model_over_compressed_tokens_takes_a_version_that_runs_it(name):
    flash, llama = model("deepseek-v4-flash"), model("llama-3.1-8b")
    newer = engine_for(name, flash)
    assert engine(name).rule("compressed_attention").effect == "error"
    assert newer.rule("compressed_attention").effect == "none"
    assert newer.rule("compressed_attention", "pipeline").effect == "none"
    assert engine_for(name, llama) == engine(name)
    assert engine_for(f"{name} 0.1", flash).version == "0.1"  # what is named is taken as it is
    assert version_for(name, "0.1", flash) == "0.1"
    assert newer.kv_cache_dtype(flash) == "fp8"
    assert newer.kv_cache_dtype(llama) == "bf16"


def test_kernels_of_one_format_may_pad_by_the_method_of_quantization():
    facts = engine("vllm", "0.25").on(gpu("h200-sxm-141gb"))
    own = facts.kernel_padding("mxfp4", Quantization("deepseek_v4", "mxfp4"))
    assert facts.kernel_padding("mxfp4", None).contracted == 512
    assert (own.expert_width, own.contracted) == (128, 1)
    assert facts.kernel_padding("mxfp4", Quantization("of another", "mxfp4")) == facts.kernel_padding("mxfp4", None)

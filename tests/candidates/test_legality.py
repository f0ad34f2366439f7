from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.candidates.legality import (
    legal_expert_parallel,
    legal_tensor_parallel,
    rulebook,
    tensor_parallel_violations,
    violations,
)
from planner.candidates.legality.kv_heads import legal as kv_legal
from planner.candidates.legality.rulebook import RULES
from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind, ModelArchitecture, Quantization, VisionTower
from planner.catalog.engines import engine, engine_names
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.setting import Precision
from planner.diagnostics import Severity, errors
from planner.plan.shape import Degrees

H100, T4, A100, MI300X = gpu("h100-sxm-80gb"), gpu("t4-16gb"), gpu("a100-sxm-80gb"), gpu("mi300x-192gb")
VLLM, SGLANG, TRT = engine("vllm"), engine("sglang"), engine("tensorrt-llm")


def dense(heads=32, kv_heads=8, width=14336, vocabulary=128256, layers=4, quantization=None, hidden=4096, vision=None):
    attention = Attention(AttentionKind.FULL, heads, kv_heads, 128, 128)
    kind = LayerKind(attention=attention, feed_forward=FeedForward(width=width))
    return ModelArchitecture(
        "dense", "llama", hidden, vocabulary, (kind,), (0,) * layers, False, 8192, "bf16", "test", quantization=quantization, vision=vision
    )


def precision_of(architecture, activations="bf16", kv_cache="bf16"):
    scheme = architecture.quantization
    return Precision(scheme.weights if scheme else "bf16", kv_cache, activations, scheme)


def found(architecture, degrees, facts=VLLM, card=H100, **formats):
    return violations(architecture, precision_of(architecture, **formats), facts, card, degrees)


def codes(*arguments, **keywords):
    return {item.code for item in errors(found(*arguments, **keywords))}


def test_a_legal_layout_has_nothing_to_say():
    assert found(dense(), Degrees(4, 2)) == ()


def test_all_violations_come_at_once():
    scheme = Quantization("fp8", "fp8", block=(128, 128), scale_bytes=4.0)
    architecture = dense(heads=64, kv_heads=8, vocabulary=32000, quantization=scheme)
    degrees = Degrees(6, 9, 2, 2)
    assert codes(architecture, degrees) == {
        "HEADS_NOT_DIVISIBLE",
        "KV_HEADS_NOT_DIVISIBLE",
        "VOCAB_NOT_DIVISIBLE",
        "QUANT_BLOCK_NOT_DIVISIBLE",
        "NO_EXPERTS",
        "ATTENTION_DP_NEEDS_EXPERTS",
        "PP_EXCEEDS_LAYERS",
    }
    assert codes(architecture, degrees, card=T4) >= {"UNSUPPORTED_DTYPE_ARCH", "HEADS_NOT_DIVISIBLE"}


def test_errors_come_before_warnings():
    architecture = dense(heads=48, vision=VisionTower(25, None))
    severities = [item.severity for item in found(architecture, Degrees(5))]
    assert severities == sorted(severities, key=lambda severity: severity is not Severity.ERROR)
    assert Severity.WARNING in severities


@pytest.mark.parametrize(
    ("kv_heads", "tensor", "held"), [(8, 4, True), (8, 8, True), (8, 16, True), (8, 12, False), (10, 4, False), (1, 7, True)]
)
def test_kv_heads_divide_or_replicate(kv_heads, tensor, held):
    assert kv_legal(kv_heads, tensor) is held


def test_the_arithmetic_is_in_the_sentence():
    [item] = [item for item in found(dense(heads=64), Degrees(6)) if item.code == "HEADS_NOT_DIVISIBLE"]
    assert item.message == "64 attention heads / TP 6 leaves 4 over"
    assert "TP1, TP2, TP4, TP8" in item.hint


def test_one_latent_never_refuses():
    assert "KV_HEADS_NOT_DIVISIBLE" not in codes(model("deepseek-v3"), Degrees(16))


def test_experts_divide_over_the_expert_ranks():
    architecture = replace(model("qwen3-235b-a22b"), name="experts")
    assert codes(architecture, Degrees(4, 1, 4, 1)) == set()
    assert codes(architecture, Degrees(1, 1, 6, 6)) == {"EXPERTS_NOT_DIVISIBLE"}
    assert "redundant" in next(iter(errors(found(architecture, Degrees(1, 1, 6, 6))))).hint


def test_expert_layouts_are_those_of_the_engine():
    architecture = model("qwen3-235b-a22b")
    assert codes(architecture, Degrees(8, 1, 4), VLLM) == {"EP_LAYOUT_NOT_SUPPORTED"}
    assert codes(architecture, Degrees(8, 1, 4), SGLANG) == set()
    assert codes(architecture, Degrees(8, 1, 3), SGLANG) >= {"EP_LAYOUT_NOT_SUPPORTED"}


def test_data_parallel_attention_is_for_experts():
    assert codes(dense(), Degrees(2, 1, 1, 2)) == {"ATTENTION_DP_NEEDS_EXPERTS"}
    assert codes(model("qwen3-235b-a22b"), Degrees(2, 1, 8, 4), VLLM) == set()
    assert codes(model("qwen3-235b-a22b"), Degrees(2, 1, 8, 4), TRT) == {"ATTENTION_DP_LAYOUT"}
    assert codes(model("qwen3-235b-a22b"), Degrees(1, 1, 8, 8), TRT) == set()


def test_number_formats_by_gpu_and_engine():
    fp8 = dense(quantization=Quantization("fp8", "fp8"))
    nvfp4 = dense(quantization=Quantization("modelopt", "nvfp4", group=16, scale_bytes=1.0))
    int4 = dense(quantization=Quantization("awq", "int4", group=128, scale_bytes=2.5))
    assert codes(fp8, Degrees(1), card=A100) == set()
    assert codes(fp8, Degrees(1), card=T4, activations="fp16") == {"UNSUPPORTED_DTYPE_ARCH"}
    assert codes(fp8, Degrees(1), TRT, A100) == {"UNSUPPORTED_DTYPE_ARCH"}
    assert codes(fp8, Degrees(1), card=MI300X) == set()
    assert codes(nvfp4, Degrees(1), VLLM, H100) == set()
    assert codes(nvfp4, Degrees(1), SGLANG, H100) == {"UNSUPPORTED_DTYPE_ARCH"}
    assert codes(nvfp4, Degrees(1), SGLANG, gpu("b200-180gb")) == set()
    assert codes(int4, Degrees(1), card=T4, activations="fp16") == set()
    assert codes(int4, Degrees(1), card=MI300X) == set()


def test_bf16_needs_a_gpu_that_has_it():
    assert codes(dense(), Degrees(1), card=T4) == {"UNSUPPORTED_DTYPE_ARCH"}
    half = replace(dense(), dtype="fp16")
    assert not errors(violations(half, Precision("fp16", "fp16", "fp16"), VLLM, T4, Degrees(1)))


def test_fp8_kv_without_fp8_arithmetic_is_a_warning():
    listed = found(dense(), Degrees(1), card=A100, kv_cache="fp8")
    assert [(item.code, item.severity) for item in listed] == [("KV_DTYPE_NOT_NATIVE", Severity.WARNING)]


def test_a_vision_tower_of_unknown_size_is_told():
    listed = found(dense(vision=VisionTower(16, None)), Degrees(2))
    assert [item.code for item in listed] == ["VISION_WEIGHTS_UNKNOWN"]


def test_fp8_on_ampere_goes_through_marlin_tiles():
    architecture = dense(width=29568, heads=64, hidden=8192, quantization=Quantization("fp8", "fp8"))
    assert codes(architecture, Degrees(4), card=A100) == {"KERNEL_TILE"}
    assert codes(architecture, Degrees(4), card=H100) == set()


def test_experts_kept_whole_make_a_degree_legal():
    architecture = model("qwen3-235b-a22b-fp8")
    question = architecture, precision_of(architecture), VLLM, H100
    assert errors(violations(*question, Degrees(8)))
    assert not errors(tensor_parallel_violations(*question, 8))
    assert legal_tensor_parallel(*question, 8) == (1, 2, 4, 8)
    assert legal_expert_parallel(*question, 8) == (8,)
    assert legal_expert_parallel(*question, 4) == (1, 4)


def test_a_mask_tells_what_violations_tell():
    architecture = model("qwen3-235b-a22b-fp8")
    book = rulebook(architecture, precision_of(architecture), VLLM, H100)
    grid = [Degrees(t, p, e, d) for t in (1, 2, 3, 4, 8) for p in (1, 2, 100) for e in (1, 4, 8) for d in (1, 2, 8)]
    assert book.legal_mask(grid) == [not errors(found(architecture, degrees)) for degrees in grid]


def test_every_rule_of_the_book_is_a_rule_of_the_engines():
    for name in engine_names():
        assert set(RULES) == {rule.rule for rule in engine(name).rules}


@settings(max_examples=60, deadline=None)
@given(
    heads=st.integers(1, 96),
    kv_heads=st.integers(1, 96),
    width=st.integers(1, 300).map(lambda count: count * 64),
    vocabulary=st.integers(1000, 200000),
    degrees=st.builds(Degrees, st.integers(1, 33), st.integers(1, 9), st.integers(1, 9), st.integers(1, 5)),
    scheme=st.sampled_from(
        [
            None,
            Quantization("fp8", "fp8", block=(128, 128), scale_bytes=4.0),
            Quantization("awq", "int4", group=128, scale_bytes=2.5),
            Quantization("modelopt", "nvfp4", group=16, scale_bytes=1.0),
        ]
    ),
    facts=st.sampled_from([VLLM, SGLANG, TRT]),
)
def test_no_degrees_raise_and_each_broken_rule_is_reported(heads, kv_heads, width, vocabulary, degrees, scheme, facts):
    """An illegal shape never aborts a search; heads and kv heads are judged whatever else is wrong."""
    architecture = dense(heads, kv_heads, width, vocabulary, quantization=scheme)
    broken = codes(architecture, degrees, facts)
    t = degrees.tensor_parallel
    assert ("HEADS_NOT_DIVISIBLE" in broken) == (heads % t != 0)
    assert ("KV_HEADS_NOT_DIVISIBLE" in broken) == (kv_heads % t != 0 and t % kv_heads != 0)
    assert ("PP_EXCEEDS_LAYERS" in broken) == (degrees.pipeline_parallel > architecture.layers)


@pytest.mark.parametrize("tensor", range(1, 33))
def test_whatever_is_legal_with_blocks_is_legal_without(tensor):
    plain = dense(width=18432)
    blocked = replace(plain, quantization=Quantization("fp8", "fp8", block=(128, 128), scale_bytes=4.0))
    assert codes(plain, Degrees(tensor)) <= codes(blocked, Degrees(tensor))

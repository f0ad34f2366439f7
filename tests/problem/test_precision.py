from __future__ import annotations

from dataclasses import replace

import pytest

from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind, ModelArchitecture, Quantization
from planner.catalog.engines import engine
from planner.catalog.gpus import gpu
from planner.problem.documents import Deployment
from planner.problem.precision import precision_notes, resolve_precisions

LAYER = LayerKind(Attention(AttentionKind.FULL, 32, 8, 128, 128), None, FeedForward(width=14336))
MODEL = ModelArchitecture("m", "llama", 4096, 128256, (LAYER,), (0,) * 32, False, 8192, "bf16", "written for this test")
BLOCK_FP8 = Quantization("fp8", "fp8", block=(128, 128), scale_bytes=4.0)
NVFP4_KV8 = Quantization("modelopt", "nvfp4", group=16, scale_bytes=1.0, kv_cache="fp8")


def formats(precision=None, model=MODEL, engine_name="vllm", gpu_name="h100-sxm-80gb"):
    deployment = Deployment.model_validate(
        {
            "name": "d",
            "model": "m",
            "precision": precision,
            "workload": {"prompt_tokens": 10, "output_tokens": 5, "concurrency": 2},
        }
    )
    return resolve_precisions(deployment, model, engine(engine_name), gpu(gpu_name))


def names(found):
    return [(precision.weights, precision.kv_cache, precision.activations) for precision in found]


def test_absent_is_the_checkpoints_own():
    assert names(formats()) == [("bf16", "bf16", "bf16")]
    (own,) = formats(model=replace(MODEL, quantization=BLOCK_FP8))
    assert (own.weights, own.quantization) == ("fp8", BLOCK_FP8)


def test_the_checkpoints_dtype_by_name_is_its_own_scheme():
    (own,) = formats({"weights": "fp8"}, replace(MODEL, quantization=BLOCK_FP8))
    assert own.quantization is BLOCK_FP8


@pytest.mark.parametrize(("dtype", "group"), [("fp8", None), ("int8", None), ("int4", 128), ("nvfp4", 16), ("mxfp4", 32)])
def test_another_dtype_is_an_assumed_scheme(dtype, group):
    (found,) = formats({"weights": dtype})
    assert (found.quantization.weights, found.quantization.group) == (dtype, group)
    assert "assumed" in found.quantization.method


def test_sixteen_bits_of_a_quantized_checkpoint_are_plain():
    (found,) = formats({"weights": "bf16"}, replace(MODEL, quantization=BLOCK_FP8))
    assert (found.weights, found.quantization) == ("bf16", None)


def test_the_kv_cache_follows_the_engine():
    fp8 = {"weights": "fp8"}
    assert names(formats(fp8)) == [("fp8", "bf16", "bf16")]
    assert names(formats(fp8, engine_name="sglang")) == [("fp8", "bf16", "bf16")]
    assert names(formats(fp8, engine_name="tensorrt-llm")) == [("fp8", "fp8", "bf16")]
    assert names(formats(engine_name="tensorrt-llm")) == [("bf16", "bf16", "bf16")]
    with_scales = replace(MODEL, quantization=NVFP4_KV8)
    assert names(formats(model=with_scales, engine_name="tensorrt-llm", gpu_name="b200-180gb")) == [("nvfp4", "fp8", "bf16")]
    assert names(formats({"kv_cache": "fp8"})) == [("bf16", "fp8", "bf16")]


def test_any_is_what_the_gpu_supports():
    assert [precision.weights for precision in formats({"weights": "any"})] == ["bf16", "fp8", "int4"]
    assert [precision.weights for precision in formats({"weights": "any"}, gpu_name="a100-sxm-80gb")] == ["bf16", "int4"]
    assert [precision.weights for precision in formats({"weights": "any"}, gpu_name="b200-180gb")] == ["bf16", "fp8", "nvfp4", "int4"]
    own_first = formats({"weights": "any"}, replace(MODEL, quantization=BLOCK_FP8))
    assert [precision.weights for precision in own_first] == ["fp8", "bf16", "int4"]
    assert own_first[0].quantization is BLOCK_FP8
    assert [precision.kv_cache for precision in formats({"kv_cache": "any"})] == ["bf16", "fp8"]
    assert [precision.kv_cache for precision in formats({"kv_cache": "any"}, gpu_name="a100-sxm-80gb")] == ["bf16"]


def test_no_two_alternatives_are_alike():
    for name in ("h100-sxm-80gb", "b200-180gb", "a100-sxm-80gb", "v100-sxm2-32gb", "mi300x-192gb", "t4-16gb"):
        for model in (MODEL, replace(MODEL, quantization=BLOCK_FP8)):
            pairs = [(precision.weights, precision.kv_cache) for precision in formats("any", model, gpu_name=name)]
            assert pairs
            assert len(pairs) == len(set(pairs))


def test_old_gpus_compute_in_fp16():
    assert names(formats(gpu_name="v100-sxm2-32gb")) == [("fp16", "fp16", "fp16")]
    assert names(formats(gpu_name="t4-16gb")) == [("fp16", "fp16", "fp16")]
    assert names(formats(gpu_name="mi300x-192gb")) == [("bf16", "bf16", "bf16")]
    assert names(formats(model=replace(MODEL, dtype="fp16"))) == [("fp16", "fp16", "fp16")]
    assert names(formats(model=replace(MODEL, dtype="fp32"))) == [("bf16", "bf16", "bf16")]


@pytest.mark.parametrize(
    ("precision", "scheme", "said"),
    [
        (None, None, None),
        ({"weights": "bf16"}, None, None),
        ({"weights": "fp8"}, BLOCK_FP8, None),
        ({"kv_cache": "fp8"}, None, None),
        ({"weights": "fp8"}, None, "assumed fp8"),
        ({"weights": "int4"}, BLOCK_FP8, "groups of 128"),
        ({"weights": "bf16"}, BLOCK_FP8, "expanded to bf16"),
        ("any", None, "in the usual way"),
    ],
)
def test_assumed_schemes_are_told(precision, scheme, said):
    deployment = Deployment.model_validate(
        {"name": "d", "model": "m", "precision": precision, "workload": {"prompt_tokens": 10, "output_tokens": 5, "concurrency": 2}}
    )
    notes = precision_notes(deployment, replace(MODEL, quantization=scheme))
    assert [note.code for note in notes] == ["PRECISION_ASSUMED"] * (said is not None)
    assert all(said in note.message for note in notes)

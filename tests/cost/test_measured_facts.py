"""Judged facts of published measurements: which layout wins, and by which rule of the model.

Throughput of full engines: NVIDIA/TensorRT-LLM performance overview, versions 0.14 and 1.0. TPOT: ai-dynamo/aiconfigurator silicon samples.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalog.gpus import gpu
from planner.catalog.links import link
from planner.catalog.models import model
from planner.cost.evaluation import evaluate
from planner.cost.memory import memory
from planner.cost.setting import Precision, Setting, ShapeArrays
from planner.topology.paths import LinkPath

SIXTEEN = Precision("bf16", "bf16", "bf16")
FP8 = Precision("fp8", "fp8", "bf16", model("llama-3.1-70b-fp8").quantization)
NVFP4 = Precision("nvfp4", "fp8", "bf16")

# Prompt and output tokens whose measured total falls from four GPUs to eight, by model, number format and PCIe card.
FALLING = [
    ("llama-3.1-70b", SIXTEEN, "a100-pcie-80gb", ((1000, 1000), (128, 128), (2048, 128), (5000, 500))),
    ("llama-3.1-70b", FP8, "l40s-48gb", ((128, 128), (2048, 128), (5000, 500))),
    ("mixtral-8x7b", SIXTEEN, "a100-pcie-80gb", ((128, 128), (2048, 128))),
    ("mixtral-8x7b", FP8, "l40s-48gb", ((128, 128), (2048, 128))),
]


def setting_of(name, precision, card, prompt, output, version="0.14"):
    chip = gpu(card)
    joined = link(chip.pcie if chip.scale_up is None or chip.scale_up.endswith("bridge") else chip.scale_up)
    speed = joined.bandwidth.value
    return Setting(
        architecture=model(name),
        precision=precision,
        engine=f"tensorrt-llm {version}",
        gpu=chip,
        paths=(LinkPath("gpu", joined, speed, speed, 0), LinkPath("host", joined, speed, speed, 2)),
        prompt_tokens=float(prompt),
        output_tokens=float(output),
        max_batched_tokens=4096,
        max_model_len=prompt + output,
        gpu_memory_utilization=0.95,
    )


def shapes_of(*degrees, batch=1):
    t, p = (np.array(column, dtype=np.int64) for column in zip(*degrees, strict=True))
    ones = np.ones_like(t)
    inside = (t > 1).astype(np.int64)
    return ShapeArrays(t, p, ones, ones, ones * batch, inside, inside, ones, (t * p > 1).astype(np.int64))


def full_throughput(setting, *degrees):
    """Total output tokens/s with as many sequences as fit, at most the 4096 that engines are built for."""
    shapes = shapes_of(*degrees)
    held = np.minimum(memory(setting, shapes).max_sequences, 4096)
    assert (held > 0).all()
    filled = ShapeArrays(**{name: held if name == "batch" else getattr(shapes, name) for name in ShapeArrays.__dataclass_fields__})
    return evaluate(setting, filled).throughput


@pytest.mark.parametrize(("name", "precision", "card", "lengths"), FALLING)
def test_eight_gpus_behind_pcie_serve_less_than_four(name, precision, card, lengths):
    for prompt, output in lengths:
        four, eight = full_throughput(setting_of(name, precision, card, prompt, output), (4, 1), (8, 1))
        assert eight < four, (prompt, output)


def test_a_starved_cache_makes_one_gpu_lose_to_two():
    # 70B in FP8 on H100: 418 tokens/s per GPU at TP1, 2926 at TP2 (128 in, 2048 out).
    one, two = full_throughput(setting_of("llama-3.1-70b", FP8, "h100-sxm-80gb", 128, 2048), (1, 1), (2, 1))
    assert two / 2 > 3 * one
    # Where the cache is not starved one GPU wins: H200 at 2048 in, 128 out, 458 against 350.
    one, two = full_throughput(setting_of("llama-3.1-70b", FP8, "h200-sxm-141gb", 2048, 128), (1, 1), (2, 1))
    assert one > two / 2


@pytest.mark.parametrize(("prompt", "output"), [(128, 4096), (2048, 2048), (20000, 2000)])
def test_two_stages_beat_one_gpu_for_a_70b_model_in_fp4(prompt, output):
    one, two = full_throughput(setting_of("llama-3.1-70b", NVFP4, "rtx-pro-6000-96gb", prompt, output, "1.0"), (1, 1), (1, 2))
    assert two / 2 > one


def test_tensor_parallelism_beats_stages_in_latency_and_ties_in_throughput_on_two_pcie_gpus():
    # Qwen3-32B, vLLM, two cards without NVLink, 1024 in, 256 out: 26.4 against 47.0 ms alone, 47.2 against 56.4 ms and 497 against 488 tokens/s at 32.
    setting = replace(setting_of("qwen3-32b", SIXTEEN, "rtx-pro-6000-96gb", 1024, 256), engine="vllm")
    alone = evaluate(setting, shapes_of((2, 1), (1, 2), batch=1))
    assert alone.tpot[0] < 0.7 * alone.tpot[1]
    many = evaluate(setting, shapes_of((2, 1), (1, 2), batch=32))
    assert many.tpot[0] < many.tpot[1]
    assert many.throughput[0] == pytest.approx(many.throughput[1], rel=0.25)


def test_eight_h200_serve_no_more_a_gpu_than_four_at_128_sequences():
    setting = setting_of("llama-3.1-70b", FP8, "h200-sxm-141gb", 1000, 1000, "1.0")
    four, eight = evaluate(setting, shapes_of((4, 1), (8, 1), batch=128)).throughput
    assert eight / 8 < 0.9 * four / 4

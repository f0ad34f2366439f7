"""Weights, KV and outcomes against published start-up logs.

Rows marked `fitted` shaped a constant or an assumption and are no predictions: the sampler's bytes, the layers' activations, MXFP4 padding, R1's layer split
(its log does not give one; 32 and 29 was chosen because it reproduces the weights). Versions, chunk sizes and GPUs that a source
leaves out are assumed, as the comments say. Rows that miss the 5 % target keep their own, larger `kv_tolerance`.

Not reproduced at all: vllm-project/vllm pull request 2031 (333,840 tokens for Llama-2-70B at TP4; about 500,000 are computed, near the 31,615 blocks the same
report gives for the older main) and the shortfall of Qwen3-32B at TP1 on a 95 GiB card (24.42 GiB; 22.4 to 26.3 by the version assumed).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from planner.catalog.engines import engine
from planner.catalog.facts import Fact
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.memory import memory
from planner.cost.memory_detail import one_shape
from planner.cost.memory_kv import kv_bytes_per_sequence
from planner.cost.setting import Precision, Setting
from planner.plan.shape import Degrees

GIB = 2.0**30
PLANNER_DOC = "llm-d-incubation/llm-d-planner docs/empirical-vllm-memory-results.md @e50305af"


@dataclass(frozen=True)
class Row:
    """One published log: weights and KV cache of one GPU [GiB], tokens, and the outcome."""

    source: str
    model: str
    gpu: str
    engine: str
    utilization: float
    degrees: Degrees
    weights: float | None = None
    kv: float | None = None
    memory: float | None = None
    batched: int | None = None
    partition: tuple[int, ...] | None = None
    fitted: bool = False
    tolerance: float = 0.01
    kv_tolerance: float = 0.05


LOGS = [
    Row(PLANNER_DOC, "gpt-oss-20b", "h100-sxm-80gb", "vllm 0.11", 0.9, Degrees(1), 13.47, 50.28, 79.18, tolerance=0.02),
    Row(PLANNER_DOC, "llama-3.3-70b-fp8-dynamic", "h100-sxm-80gb", "vllm 0.11", 0.9, Degrees(2), 33.88, 32.0, 79.18, fitted=True),
    Row(PLANNER_DOC, "llama-3.1-8b", "h100-sxm-80gb", "vllm 0.11", 0.9, Degrees(1), 14.99, 51.38, 79.18, fitted=True),
    Row(PLANNER_DOC, "qwen3-32b", "h100-sxm-80gb", "vllm 0.11", 0.9, Degrees(1), 61.03, 4.45, 79.18, fitted=True),
    Row(PLANNER_DOC, "qwen3-32b", "h100-sxm-80gb", "vllm 0.11", 0.9, Degrees(2), 30.59, 34.49, 79.18, fitted=True),
    Row("vllm-project/vllm pull request 10511", "llama-3-8b", "a100-sxm-80gb", "vllm 0.6.5", 0.9, Degrees(1), 14.96, 53.29, 79.22),
    # Its KV is derived from the other three figures; communicators and context took 3.58 GiB there, 0.55 is expected.
    Row(
        "vllm-project/vllm pull request 10511",
        "llama-3-8b",
        "a100-sxm-80gb",
        "vllm 0.6.5",
        0.9,
        Degrees(2),
        7.48,
        58.97,
        79.22,
        kv_tolerance=0.06,
    ),
    # The source does not print its version.
    Row(
        "Qwen3-32B at PP2 on 95 GiB cards, blog in a public repository",
        "qwen3-32b",
        "rtx-pro-6000-96gb",
        "vllm 0.17",
        0.426,
        Degrees(1, 2),
        30.52,
        6.92,
        95.0,
        kv_tolerance=0.12,
    ),
    Row(
        "vllm-project/vllm issue 13074",
        "deepseek-r1",
        "h200-sxm-141gb",
        "vllm 0.7.2",
        1.0,
        Degrees(8, 2),
        39.66,
        97.29,
        139.72,
        2048,
        (32, 29),
        fitted=True,
    ),
    Row("vllm-project/vllm issue 6746", "llama-3.1-405b-fp8", "h100-sxm-80gb", "vllm 0.5.3", 0.9, Degrees(8), 57.752, tolerance=0.03),
    Row(
        "vllm-project/vllm issue 10517",
        "llama-3.1-8b",
        "rtx-3090-24gb",
        "vllm 0.6",
        0.9,
        Degrees(1),
        14.9888,
        None,
        23.58,
        29000,
        fitted=True,
    ),
    # The printed worker had 8.69 GiB of KV; 7.46 is what the 81,536 tokens of the thread imply for the worker that samples.
    Row(
        "vllm-project/vllm issue 13061",
        "deepseek-r1-distill-qwen-14b",
        "rtx-4090-24gb",
        "vllm 0.7.2",
        0.98,
        Degrees(2),
        13.9476,
        7.46,
        23.55,
        2048,
        tolerance=0.015,
    ),
    Row("vllm-project/vllm issue 23278", "gpt-oss-120b", "h100-sxm-80gb", "vllm 0.10.1", 0.9, Degrees(1), 65.9651, fitted=True),
    Row("vllm-project/vllm issue 27508", "gpt-oss-120b", "h100-sxm-80gb", "vllm 0.11", 0.95, Degrees(1), None, 1.71),
    # The source says a 32B model of Qwen; version and GPU are assumed.
    Row("vllm-project/vllm issue 16301", "qwen3-32b", "h100-sxm-80gb", "vllm 0.8", 0.9, Degrees(1), 61.0374),
    Row(
        "kvcached pull request 448",
        "qwen2.5-0.5b",
        "a100-sxm-40gb",
        "vllm 0.17",
        36.33 / 39.38,
        Degrees(1),
        0.93,
        34.7,
        39.38,
        tolerance=0.015,
    ),
]


def row_setting(row, prompt=16000):
    facts = engine(row.engine)
    card = gpu(row.gpu)
    if row.memory is not None:
        card = replace(card, memory=Fact(row.memory * GIB, "measured", row.source))
    architecture = model(row.model)
    scheme = architecture.quantization
    weights = scheme.weights if scheme is not None else architecture.dtype
    precision = Precision(weights, facts.kv_cache_dtype(architecture), architecture.dtype, scheme)
    batched = row.batched or facts.batched_tokens(card)
    return Setting(architecture, precision, row.engine, card, (), float(prompt), 0.0, batched, prompt, row.utilization)


def measured(row):
    return memory(row_setting(row), one_shape(row.degrees, 1), None if row.partition is None else [row.partition])


def name(row):
    return f"{row.model}-{row.degrees}-{row.engine}"


@pytest.mark.parametrize("row", [row for row in LOGS if row.weights is not None], ids=name)
def test_weights_per_gpu(row):
    """Within 1 %; exceptions: gpt-oss-20b (2 %, kernel padding read off the 120b), 405B FP8 (3 %, two layers kept in 16 bits), 14B (1.5 %),
    and 0.5B, whose log has two digits."""
    assert measured(row).weights[0] / GIB == pytest.approx(row.weights, rel=row.tolerance)


@pytest.mark.parametrize("row", [row for row in LOGS if row.kv is not None], ids=name)
def test_kv_cache_per_gpu(row):
    """Within 5 % but for the rows that say otherwise, or within 0.15 GiB where hardly any is left."""
    table = measured(row)
    room = float(table.budget[0] - table.weights[0] - table.other[0]) / GIB
    assert room == pytest.approx(row.kv, rel=row.kv_tolerance, abs=0.15)


# Tokens an engine printed for the KV cache it printed: only the bytes per token are judged.
TOKENS = [
    ("vllm-project/vllm issue 21348", "qwen3-235b-a22b-fp8", 4, 8.11, 178_880),
    ("vllm-project/vllm issue 10517", "llama-3.1-8b", 1, 2.89, 23_648),
    ("start-up log of Llama-3.1-8B on an RTX 3090 in a public repository", "llama-3.1-8b", 1, 3.78, 30_960),
    ("start-up log of Llama-3.1-8B in a public repository", "llama-3.1-8b", 1, 19.28, 157_936),
    ("vllm-project/vllm issue 16301", "qwen3-32b", 1, 3.92, 16_064),
    ("vllm-project/vllm issue 6746", "llama-3.1-405b-fp8", 8, 4.77, 79_392),
]


@pytest.mark.parametrize(("source", "named", "tensor", "kv", "tokens"), TOKENS, ids=[f"{row[1]}-{row[4]}" for row in TOKENS])
def test_tokens_of_a_kv_cache(source, named, tensor, kv, tokens):
    assert source
    architecture = model(named)
    facts = engine("vllm")
    precision = Precision("bf16", "bf16", "bf16")
    shape = one_shape(Degrees(tensor), 1)
    per_token = kv_bytes_per_sequence(architecture, precision, facts, shape.tensor_parallel, 16384.0)[0] / 16384
    assert kv * GIB / per_token == pytest.approx(tokens, rel=0.012)


@dataclass(frozen=True)
class Tried:
    """One published attempt to start: the longest context asked for, and whether it started."""

    model: str
    gpu: str
    engine: str
    degrees: Degrees
    context: int
    fits: bool
    batched: int | None = None
    source: str = "LambdaLabsML/vllm-benchmark benchmark_v0.md"


# Contexts above 32k are assumed to be prefilled in chunks of 512 under vLLM 0.5.4; the source does not say.
OUTCOMES = [
    Tried("llama-3.1-70b-fp8", "h100-sxm-80gb", "vllm 0.11", Degrees(1), 16000, False, source=PLANNER_DOC),
    Tried("qwen3-32b", "h100-sxm-80gb", "vllm 0.11", Degrees(1), 32000, False, source=PLANNER_DOC),
    Tried("qwen3-32b", "h100-sxm-80gb", "vllm 0.11", Degrees(1), 16000, True, source=PLANNER_DOC),
    Tried("llama-3.1-8b", "rtx-3090-24gb", "vllm 0.6", Degrees(1), 29000, False, 29000, "vllm-project/vllm issue 10517"),
    Tried("gpt-oss-120b", "h100-sxm-80gb", "vllm 0.10.1", Degrees(1), 131072, False, source="vllm-project/vllm issue 23278"),
    Tried("llama-3.1-70b-fp8", "a100-sxm-80gb", "vllm 0.5.4", Degrees(1), 4096, True, 4096),
    Tried("mixtral-8x7b", "a100-sxm-80gb", "vllm 0.5.4", Degrees(1), 1024, False, 1024),
    Tried("mixtral-8x22b", "a100-sxm-80gb", "vllm 0.5.4", Degrees(1), 1024, False, 1024),
    Tried("llama-3.1-70b-fp8", "a100-sxm-80gb", "vllm 0.5.4", Degrees(2), 131072, True, 512),
    Tried("mixtral-8x7b", "a100-sxm-80gb", "vllm 0.5.4", Degrees(2), 32768, True, 32768),
    Tried("mixtral-8x22b", "a100-sxm-80gb", "vllm 0.5.4", Degrees(4), 16384, True, 16384),
    Tried("mistral-large-123b", "a100-sxm-80gb", "vllm 0.5.4", Degrees(4), 131072, True, 512),
    Tried("llama-3.1-405b-fp8", "a100-sxm-80gb", "vllm 0.5.4", Degrees(8), 131072, True, 512),
    Tried("mixtral-8x22b", "a100-sxm-80gb", "vllm 0.5.4", Degrees(8), 65536, True, 512),
    Tried("llama-3.1-70b", "h100-sxm-80gb", "tensorrt-llm", Degrees(2), 2048, True, source="NVIDIA/TensorRT-LLM performance overview"),
    Tried("llama-3.1-405b-fp8", "h100-sxm-80gb", "tensorrt-llm", Degrees(8), 2048, True, source="NVIDIA/TensorRT-LLM performance overview"),
    Tried("mixtral-8x22b", "a100-sxm-80gb", "tensorrt-llm", Degrees(8), 2048, True, source="NVIDIA/TensorRT-LLM performance overview"),
    Tried("qwen3-32b", "h100-sxm-80gb", "vllm 0.8", Degrees(1), 16064, True, source="vllm-project/vllm issue 16301"),
]


@pytest.mark.parametrize("tried", OUTCOMES, ids=lambda tried: f"{tried.model}-{tried.gpu}-{tried.degrees}-{tried.context}")
def test_what_started_fits_and_what_did_not_does_not(tried):
    """The verdict is the outcome wherever it does not hang on the band of the other terms; there it is called borderline."""
    row = Row(tried.source, tried.model, tried.gpu, tried.engine, 0.9, tried.degrees, batched=tried.batched)
    table = memory(row_setting(row, tried.context), one_shape(tried.degrees, 1))
    certain = bool(table.max_sequences_low[0] >= 1) == bool(table.max_sequences_high[0] >= 1)
    if certain:
        assert bool(table.fits[0]) is tried.fits
    else:
        assert table.max_sequences_low[0] < 1 <= table.max_sequences_high[0]


def test_most_verdicts_are_right_without_the_band():
    """The expected terms alone decide nearly all outcomes."""
    right = 0
    for tried in OUTCOMES:
        row = Row(tried.source, tried.model, tried.gpu, tried.engine, 0.9, tried.degrees, batched=tried.batched)
        right += bool(memory(row_setting(row, tried.context), one_shape(tried.degrees, 1)).fits[0]) is tried.fits
    assert right >= len(OUTCOMES) - 1

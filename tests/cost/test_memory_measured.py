"""Weights, KV and outcomes against published start-up logs (`start_up_logs.toml`).

Figures listed there as `fitted` shaped a constant and are no predictions; rows that are not `stated` leave out the engine's version or its share of the memory, or ran
beside something else, and judge the weights only.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.engines import engine
from planner.catalog.models import model
from planner.cost.memory_detail import one_shape
from planner.cost.memory_kv import kv_bytes_per_sequence
from planner.cost.setting import Precision
from planner.plan.shape import Degrees
from tests.cost import start_up_logs

GIB = 2.0**30
LOGS = start_up_logs.logs()
ATTEMPTS = start_up_logs.attempts()
# The stage of DeepSeek-R1 under vLLM 0.7.2 holds 1.3 % more than its matrices and their products explain.
UNEXPLAINED = {("vllm-project/vllm issue 13074", "weights"): 0.015}


@pytest.mark.parametrize("log", [log for log in LOGS if log.weights is not None], ids=str)
def test_weights_per_gpu(log):
    """Within 1 %, however it was cut."""
    assert start_up_logs.predict(log).weights == pytest.approx(log.weights, rel=UNEXPLAINED.get((log.source, "weights"), 0.01))


@pytest.mark.parametrize("log", [log for log in LOGS if log.kv is not None and log.stated], ids=str)
def test_kv_cache_per_gpu(log):
    """Within 5 %, or within 0.6 GiB where that is more: what the engine keeps besides differs by so much between machines."""
    assert start_up_logs.predict(log).kv == pytest.approx(log.kv, rel=0.05, abs=0.6)


def test_predictions_keep_what_is_promised_of_them():
    """Rows that shaped no constant: weights within 1 % throughout, KV within 5 % for nine in ten."""
    weights = [start_up_logs.predict(log).weights / log.weights - 1 for log in LOGS if log.weights and "weights" not in log.fitted]
    kept = [start_up_logs.predict(log).kv / log.kv - 1 for log in LOGS if log.kv and log.stated and "kv" not in log.fitted]
    assert len(weights) >= 25
    assert len(kept) >= 15
    assert np.max(np.abs(weights)) <= 0.01
    assert np.median(np.abs(weights)) <= 0.001
    assert np.quantile(np.abs(kept), 0.9) <= 0.05
    assert np.median(np.abs(kept)) <= 0.01


# Tokens an engine printed for the KV cache it printed: only the bytes per token are judged.
TOKENS = [
    ("vllm-project/vllm issue 21348", "qwen3-235b-a22b-fp8", 4, 8.11, 178_880),
    ("vllm-project/vllm issue 10517", "llama-3.1-8b", 1, 2.89, 23_648),
    ("start-up log of Llama-3.1-8B on an RTX 3090 in a public repository", "llama-3.1-8b", 1, 3.78, 30_960),
    ("start-up log of Llama-3.1-8B in a public repository", "llama-3.1-8b", 1, 19.28, 157_936),
    ("vllm-project/vllm issue 16301", "qwen3-32b", 1, 3.92, 16_064),
    ("vllm-project/vllm issue 6746", "llama-3.1-405b-fp8", 8, 4.77, 79_392),
    ("llm-d-incubation/llm-d-planner docs/accuracy/vllm-v0.19.0-accuracy-report.md", "llama-3.1-8b", 1, 58.11, 476_016),
    ("llm-d-incubation/llm-d-planner docs/accuracy/vllm-v0.19.0-accuracy-report.md", "qwen2.5-7b", 1, 58.53, 1_096_000),
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


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=str)
def test_what_started_fits_and_what_did_not_does_not(attempt):
    """The verdict is the outcome wherever it does not hang on the band of the other terms; there it is called borderline."""
    low, expected, high = start_up_logs.verdicts(attempt)
    assert expected is attempt.fits
    assert low or not high
    if low is high:
        assert low is attempt.fits


def test_few_outcomes_hang_on_the_band():
    """Eleven of forty are borderline; without the band all are right."""
    certain = [low is high for low, _, high in map(start_up_logs.verdicts, ATTEMPTS)]
    assert sum(certain) >= len(ATTEMPTS) - 12

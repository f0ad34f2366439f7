"""Kernels that multiply a tile for every expert: where they run, what they cost, and what was measured with them.

TPOT of Qwen3-235B-A22B-FP8 on H200 with vLLM 0.12.0: ai-dynamo/aiconfigurator silicon samples. No constant was fitted to these rows.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.expert_tiles import expert_tile
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.compute import Matrices, matrices_seconds
from planner.cost.evaluation import evaluate
from planner.cost.setting import Precision

QWEN = model("qwen3-235b-a22b-fp8")
FP8 = Precision("fp8", "bf16", "bf16", QWEN.quantization)
# (t, e, dp), prompt, output, load and measured TPOT [ms]
MEASURED = [
    ((2, 1, 1), 1000, 1000, 20, 52.05),
    ((2, 1, 1), 4000, 2000, 16, 53.2),
    ((2, 1, 1), 8000, 500, 7, 53.5),
    ((2, 2, 1), 8000, 2000, 9, 55.0),
    ((4, 1, 1), 1000, 1000, 48, 36.25),
    ((4, 1, 1), 8000, 2000, 16, 33.7),
    ((4, 4, 1), 8000, 2000, 15, 34.0),
    ((1, 1, 2), 2000, 2000, 9, 58.3),
]


@pytest.mark.parametrize(
    ("name", "version", "card", "dtype", "rows"),
    [
        ("vllm", "0.12", "h200-sxm-141gb", "fp8-block", 128),
        ("vllm", "0.15.1", "h100-sxm-80gb", "fp8-block", 128),
        ("vllm", "0.11.0", "h200-sxm-141gb", "fp8-block", None),
        ("vllm", "0.16", "h200-sxm-141gb", "fp8-block", None),
        ("vllm", "0.12", "b200-180gb", "fp8-block", None),
        ("vllm", "0.12", "h200-sxm-141gb", "fp8", None),
        ("sglang", None, "h200-sxm-141gb", "fp8-block", None),
        ("tensorrt-llm", None, "h200-sxm-141gb", "fp8-block", None),
        ("an engine that nobody knows", None, "h200-sxm-141gb", "fp8-block", None),
    ],
)
def test_where_every_expert_costs_a_tile(name, version, card, dtype, rows):
    found = expert_tile(name if version is None else f"{name} {version}", gpu(card), dtype)
    assert (None if found is None else found.rows) == rows


def test_tiles_by_hand():
    # 128 experts of which 8 serve a token: 128 rows for each are the work of 2,048 tokens, whoever is touched.
    one = np.ones(3)
    tokens = np.array([1.0, 16.0, 512.0])
    matrices = Matrices(
        0.0 * one, 0.0 * one, 1e-9 * one, 1e-6 * one, 0.0 * one, experts=128, experts_per_token=8, filled=np.array([2048.0, 2048.0, 0.0])
    )
    seconds = matrices_seconds(matrices, tokens, tokens, one, np.inf, 0.0)
    assert seconds == pytest.approx([2049e-6, 2064e-6, 512e-6], rel=1e-3)


@pytest.mark.parametrize(("degrees", "prompt", "output", "load", "measured"), MEASURED)
def test_steps_are_as_long_as_they_were_measured(setting_of, shapes_of, degrees, prompt, output, load, measured):
    t, e, dp = degrees
    more = {"card": "h200-sxm-141gb", "precision": FP8, "prompt": float(prompt), "output": float(output), "max_model_len": 16384}
    predicted = evaluate(setting_of(QWEN, engine="vllm 0.12.0", **more), shapes_of((t, 1, e, dp, load))).tpot[0] * 1e3
    assert predicted == pytest.approx(measured, rel=0.12)
    assert evaluate(setting_of(QWEN, engine="vllm 0.16", **more), shapes_of((t, 1, e, dp, load))).tpot[0] * 1e3 < 0.9 * measured


def test_eight_way_tensor_parallelism_is_spared(setting_of, shapes_of):
    more = {"card": "h200-sxm-141gb", "precision": FP8}
    before, after = (
        evaluate(setting_of(QWEN, engine=f"vllm {version}", **more), shapes_of((8, 1, 1, 1, 16))).tpot for version in ("0.12", "0.16")
    )
    np.testing.assert_allclose(before, after)

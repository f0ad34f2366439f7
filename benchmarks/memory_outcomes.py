"""Weights, KV cache and start-up outcomes of published logs against the planner's memory."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from serving_groups import paths_of
from serving_rows import number

from planner.catalog.engines import engine
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.memory import memory
from planner.cost.setting import Precision, Setting, ShapeArrays

GIB = 2.0**30
MODELS = {
    ("openai/gpt-oss-20b", "mxfp4"): "gpt-oss-20b",
    ("gpt-oss-120b", "mxfp4"): "gpt-oss-120b",
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "fp8"): "llama-3.3-70b-fp8-dynamic",
    ("meta-llama/Llama-3.1-8B-Instruct", "bf16"): "llama-3.1-8b",
    ("Qwen/Qwen3-32B", "bf16"): "qwen3-32b",
    ("Qwen3-32B", "bf16"): "qwen3-32b",
    ("Qwen-32B class", "bf16"): "qwen3-32b",
    ("Llama-3-8B", "bf16"): "llama-3-8b",
    ("Llama-2-70B", "fp16"): "llama-2-70b",
    ("Qwen3-235B-A22B", "fp8"): "qwen3-235b-a22b-fp8",
    ("DeepSeek-R1", "fp8"): "deepseek-r1",
    ("Llama-3.1-405B-FP8", "fp8"): "llama-3.1-405b-fp8",
    ("Llama-3.1-405B", "fp8"): "llama-3.1-405b-fp8",
    ("Llama-3.1-8B", "bf16"): "llama-3.1-8b",
    ("Llama-3.1-70B", "fp8"): "llama-3.1-70b-fp8",
    ("Llama-3.1-70B", "fp16"): "llama-3.1-70b",
    ("DeepSeek-R1-Distill-Qwen-14B", "bf16"): "deepseek-r1-distill-qwen-14b",
    ("Mixtral-8x7B", "bf16"): "mixtral-8x7b",
    ("Mixtral-8x22B", "bf16"): "mixtral-8x22b",
    ("Mixtral-8x22B", "fp16"): "mixtral-8x22b",
    ("Mistral-Large-123B", "bf16"): "mistral-large-123b",
    ("Qwen2.5-0.5B", "bf16"): "qwen2.5-0.5b",
}
GPUS = (
    ("H100", "h100-sxm-80gb"),
    ("A100-40GB", "a100-sxm-40gb"),
    ("A100", "a100-sxm-80gb"),
    ("H200", "h200-sxm-141gb"),
    ("RTX3090", "rtx-3090-24gb"),
    ("RTX4090", "rtx-4090-24gb"),
    ("RTX-PRO", "rtx-pro-6000-96gb"),
    ("80GB", "h100-sxm-80gb"),
)
# These logs gave the engine's fixed terms their values (tests/cost/test_memory_measured.py); all others are predictions.
FITTED = "empirical-vllm-memory-results"


def report(data_dir: Path) -> None:
    """Print weights, KV and outcome of every row whose model and GPU the catalog knows."""
    weights: dict[str, list[float]] = {"fitted": [], "predicted": []}
    kept: dict[str, list[float]] = {"fitted": [], "predicted": []}
    right = wrong = borderline = unknown = 0
    with (data_dir / "memory.csv").open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            name = MODELS.get((line["model"], line["dtype"]))
            card = next((known for word, known in GPUS if word in line["gpu"]), None)
            if name is None or card is None:
                unknown += 1
                continue
            label = "fitted" if FITTED in line["source"] else "predicted"
            setting, shapes, length = _question(line, name, card)
            table = memory(setting, shapes)
            notes = []
            printed = number(line["weights_GiB_per_gpu"])
            if np.isfinite(printed):
                error = abs(float(table.weights[0]) / GIB / printed - 1.0)
                weights[label].append(error)
                notes.append(f"weights {error:.1%} off")
            cache = number(line["kv_GiB_per_gpu"])
            if cache > 0.0:
                room = float(table.budget[0] - table.weights[0] - table.other[0]) / GIB
                kept[label].append(abs(room / cache - 1.0))
                notes.append(f"KV room {room:.1f} of {cache:.1f} GiB")
            fits = line["outcome"].startswith("fits")
            low, high = bool(table.max_sequences_low[0] >= 1), bool(table.max_sequences_high[0] >= 1)
            verdict = "borderline" if low != high else "right" if low == fits else "WRONG"
            right, wrong, borderline = right + (verdict == "right"), wrong + (verdict == "WRONG"), borderline + (verdict == "borderline")
            print(f"  {label:9s} {name:30s} {card:18s} {length:6d} tokens  {line['outcome'][:24]:24s} {verdict:10s} {', '.join(notes)}")
    for what, found in (("weights", weights), ("KV room", kept)):
        for label, errors in found.items():
            if errors:
                print(f"  {what}, {label}: n {len(errors)}, median {np.median(errors):.1%}, p90 {np.quantile(errors, 0.9):.1%}")
    print(
        f"  outcomes: {right} right, {wrong} wrong, {borderline} inside the band (borderline); {unknown} rows name no model or GPU of the catalog"
    )


def _question(line: dict[str, str], name: str, card: str) -> tuple[Setting, ShapeArrays, int]:
    architecture, chip = model(name), gpu(card)
    version = re.search(r"vLLM ([\d.]+)", line["software"])
    rules = engine("tensorrt-llm") if "TensorRT" in line["software"] else engine("vllm", version.group(1) if version else None)
    printed = number(line["gpu_mem_GiB"])
    if np.isfinite(printed):
        chip = replace(chip, memory=replace(chip.memory, value=printed * GIB))
    scheme = architecture.quantization
    precision = Precision(scheme.weights if scheme else architecture.dtype, architecture.dtype, architecture.dtype, scheme)
    length = int(number(line["max_model_len"], 2048.0))
    share = number(line["gpu_memory_utilization"], rules.gpu_memory_utilization)
    setting = Setting(
        architecture, precision, rules.name, chip, paths_of(chip), float(length), 0.0, rules.max_num_batched_tokens, length, share
    )
    t, p = int(number(line["tp"], 1.0)), int(number(line["pp"], 1.0))
    columns = np.array([[t, p, 1, 1, 1, int(t > 1), int(t > 1), 1, int(t * p > 1)]], dtype=np.int64)
    return setting, ShapeArrays(*columns.T), length

"""Published rows as settings and shapes that the planner evaluates: number formats, links, and the sequences the KV cache holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from serving_doubts import marked
from serving_rows import GPUS, MODELS, SIXTEEN, Row, degrees_of, read_rows

from planner.catalog.architecture import ModelArchitecture, Quantization
from planner.catalog.engines import engine
from planner.catalog.gpus import Gpu, gpu
from planner.catalog.links import link
from planner.catalog.models import model
from planner.catalog.versions import version_key
from planner.cost.memory import memory
from planner.cost.setting import Precision, Setting, ShapeArrays
from planner.topology.paths import LinkPath

HIGH = ("embedding", "head", "router", "norm")
EXPERTS_ONLY = (*HIGH, "attention", "recurrent", "mlp", "shared_expert")

# How the checkpoints of a dtype were quantized, where the model's own config does not say it.
FP8 = Quantization("fp8", "fp8", block=(128, 128), scale_bytes=4.0, kept_high=HIGH)
FP8_CHANNEL = Quantization("fp8", "fp8", scale_bytes=4.0, kept_high=HIGH)
NVFP4 = Quantization("modelopt", "nvfp4", group=16, scale_bytes=1.0, kept_high=HIGH, kv_cache="fp8")
NVFP4_EXPERTS = replace(NVFP4, kept_high=(*HIGH, "attention", "recurrent"))
MXFP4 = Quantization("mxfp4", "mxfp4", group=32, scale_bytes=1.0, kept_high=EXPERTS_ONLY)
INT4_EXPERTS = Quantization("compressed-tensors", "int4", group=32, scale_bytes=2.0, kept_high=EXPERTS_ONLY)


def precision_of(row: Row, architecture: ModelArchitecture, card: Gpu) -> Precision:
    """Number formats of a row: its dtype, and the KV cache as the engine keeps it by default with such a checkpoint."""
    name, dtype = row.model, row.dtype
    blackwell = card.architecture.startswith("blackwell")
    if "gpt-oss" in name:
        return Precision("mxfp4", "fp8" if blackwell else SIXTEEN, SIXTEEN, MXFP4)
    if "FP8" in name:
        dtype = "fp8"
    if dtype in {SIXTEEN, "fp16"}:
        return Precision(SIXTEEN, SIXTEEN, SIXTEEN)
    if dtype == "int4":
        return Precision("int4", SIXTEEN, SIXTEEN, INT4_EXPERTS)
    cache = "fp8" if row.engine.lower().startswith(("trt", "tensorrt")) or blackwell else SIXTEEN
    if dtype == "fp4":
        routed = any(kind.feed_forward is not None and kind.feed_forward.experts for kind in architecture.layer_kinds)
        return Precision("nvfp4", "fp8", SIXTEEN, NVFP4_EXPERTS if routed else NVFP4)
    own = architecture.quantization
    return Precision("fp8", cache, SIXTEEN, own if own is not None and own.weights == "fp8" else (FP8 if "Qwen" in name else FP8_CHANNEL))


def paths_of(card: Gpu) -> tuple[LinkPath, ...]:
    """Levels of one server: a GPU alone, and all of its GPUs by NVLink or PCIe."""
    boxed = card.scale_up is None or card.scale_up.endswith("bridge")
    joined = link(card.pcie if boxed else card.scale_up or card.pcie)
    speed = joined.bandwidth.value
    return LinkPath("gpu", joined, speed, speed, 0), LinkPath("host" if boxed else "domain", joined, speed, speed, 2)


@dataclass(frozen=True)
class Group:
    """Rows of one model in one precision on one GPU with one engine, as one setting whose lengths are arrays."""

    rows: tuple[Row, ...]
    setting: Setting
    shapes: ShapeArrays
    tpot: np.ndarray
    ttft: np.ndarray


def group_rows(rows: Iterable[Row]) -> list[Group]:
    """Gather rows that share everything but lengths, degrees and load."""
    sorts: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        sorts[*row.series, row.model].append(row)
    return [_group(tuple(members)) for members in sorts.values()]


def _group(rows: tuple[Row, ...]) -> Group:
    first = rows[0]
    architecture, card = model(MODELS[first.model]), gpu(GPUS[first.gpu])
    rules = engine("tensorrt-llm" if first.engine.lower().startswith(("trt", "tensorrt")) else first.engine)
    prompt, output = np.array([row.prompt for row in rows]), np.array([row.output for row in rows])
    columns = np.array(
        [
            (*degrees_of(row), round(row.load), int(row.tensor_parallel > 1), int(row.tensor_parallel * row.data_parallel > 1), 1, 1)
            for row in rows
        ],
        dtype=np.int64,
    )
    setting = Setting(
        architecture=architecture,
        precision=precision_of(first, architecture, card),
        engine=_with_version(rules.name, rows),
        gpu=card,
        paths=paths_of(card),
        prompt_tokens=prompt,  # type: ignore[arg-type]
        output_tokens=output,  # type: ignore[arg-type]
        max_batched_tokens=8192,
        max_model_len=int(max(prompt + output)),
        gpu_memory_utilization=rules.gpu_memory_utilization,
    )
    columns[:, 4] = np.minimum(columns[:, 4], most_sequences(setting, columns))
    return Group(rows, setting, ShapeArrays(*columns.T), np.array([row.tpot for row in rows]), np.array([row.ttft for row in rows]))


def _with_version(name: str, rows: tuple[Row, ...]) -> str:
    """Engine with the newest version of the rows that is a number; kernels of experts depend on it."""
    numbered = [row.version for row in rows if row.version[:1].isdigit()]
    return f"{name} {max(numbered, key=version_key)}" if numbered else name


def most_sequences(setting: Setting, columns: np.ndarray) -> np.ndarray:
    """Sequences that the KV cache of each row holds, at the mean length of a running request."""
    prompt, output = np.asarray(setting.prompt_tokens), np.asarray(setting.output_tokens)
    most = np.empty(len(columns), dtype=np.int64)
    for length in np.unique(prompt + output / 2.0):
        rows = np.flatnonzero(prompt + output / 2.0 == length)
        held = memory(replace(setting, prompt_tokens=float(length), output_tokens=0.0), ShapeArrays(*columns[rows].T))
        most[rows] = np.maximum(held.max_sequences, 1)
    return most


def marked_rows(path: Path) -> list[Row]:
    """Read all rows of a file, those left out with the reason."""
    return marked(read_rows(path))

"""Published tables of offline throughput, every request queued at once, as settings and shapes that the planner evaluates.

The tables are those of the TensorRT-LLM performance overviews. Their text gives what the columns do not: all requests of a row are alike, 95 % of the memory goes to the
engine, a request starts when its whole context fits (no eviction), and how many requests a row ran. N requests in B slots run in ceil(N / B) waves; since B is not
known to the request, the mean of that, N / B + 1/2, is taken, and N over it run on average (step times grow linearly with the sequences).
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from serving_groups import paths_of, precision_of
from serving_rows import GPUS, MODELS, Row

from planner.catalog.engines import engine
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.memory import memory
from planner.cost.setting import Setting, ShapeArrays

# Requests of a row by prompt and output tokens (TensorRT-LLM performance overview, "Preparing a Dataset"); rows of other lengths are taken as endless.
REQUESTS = {
    (128, 128): 30000,
    (128, 2048): 3000,
    (128, 4096): 1500,
    (500, 2000): 3000,
    (1000, 1000): 3000,
    (1000, 2000): 3000,
    (2048, 128): 3000,
    (2048, 2048): 1500,
    (5000, 500): 1500,
    (20000, 2000): 1000,
}
MOST_SEQUENCES = 4096  # trtllm-bench builds engines for at most so many (tensorrt_llm/bench/build/tuning.py)
KV_FRACTION = 0.95
CHUNK = 4096  # tokens of a pass: the tuned value of each row is not recorded
OVERVIEW = "perf-overview.md"


@dataclass(frozen=True)
class OfflineRow:
    """One measured total [output tokens/s] over all GPUs of a tensor- and pipeline-parallel layout."""

    model: str
    dtype: str
    gpu: str
    version: str
    tensor_parallel: int
    pipeline_parallel: int
    prompt: int
    output: int
    throughput: float

    @property
    def series(self) -> tuple[str, str, str, str]:
        """Version, GPU, model and number format."""
        return self.version, self.gpu, self.model, self.dtype


@dataclass(frozen=True)
class OfflineGroup:
    """Rows of one series as one setting whose lengths are arrays; `held` sequences fit, `shapes.batch` of them run on average."""

    rows: tuple[OfflineRow, ...]
    setting: Setting
    shapes: ShapeArrays
    held: np.ndarray
    throughput: np.ndarray


def read_offline(path: Path) -> list[OfflineRow]:
    """Read the plain layouts of models in the catalog: attention data parallelism is left out, since its degrees are not printed."""
    found = []
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            total = line["metric"] == "output_tokens_per_s_total"
            if OVERVIEW not in line["source"] or not total or line["model"] not in MODELS or line["gpu"] not in GPUS:
                continue
            if "attention DP" in line["note"]:
                continue
            found.append(
                OfflineRow(
                    model=line["model"],
                    dtype=line["dtype"],
                    gpu=line["gpu"],
                    version=line["software"].removeprefix("TensorRT-LLM ").split()[0],
                    tensor_parallel=int(float(line["tp"])),
                    pipeline_parallel=int(float(line["pp"] or 1)),
                    prompt=int(float(line["isl"])),
                    output=int(float(line["osl"])),
                    throughput=float(line["value"]),
                )
            )
    return found


def group_offline(rows: Iterable[OfflineRow]) -> list[OfflineGroup]:
    """Gather rows that share everything but lengths and degrees."""
    sorts: dict[tuple[str, ...], list[OfflineRow]] = defaultdict(list)
    for row in rows:
        sorts[row.series].append(row)
    return [_group(tuple(members)) for members in sorts.values()]


def _group(rows: tuple[OfflineRow, ...]) -> OfflineGroup:
    first = rows[0]
    architecture, card = model(MODELS[first.model]), gpu(GPUS[first.gpu])
    plain = Row(first.model, first.dtype, first.gpu, "trtllm", first.version, 1, 1, 1, 1, 1.0, 1.0, 1.0, 1.0, 1.0, inference_x=False)
    columns = np.array(
        [
            (row.tensor_parallel, row.pipeline_parallel, 1, 1, 1, *[int(row.tensor_parallel > 1)] * 2, 1, int(row.tensor_parallel * row.pipeline_parallel > 1))
            for row in rows
        ],
        dtype=np.int64,
    )  # fmt: skip
    prompt, output = (np.array([getattr(row, name) for row in rows], dtype=np.float64) for name in ("prompt", "output"))
    held = np.empty(len(rows), dtype=np.int64)
    setting = Setting(
        architecture=architecture,
        precision=precision_of(plain, architecture, card),
        engine=f"{engine('tensorrt-llm').name} {first.version}",
        gpu=card,
        paths=paths_of(card),
        prompt_tokens=prompt,  # type: ignore[arg-type]
        output_tokens=output,  # type: ignore[arg-type]
        max_batched_tokens=CHUNK,
        max_model_len=int(max(prompt + output)),
        gpu_memory_utilization=KV_FRACTION,
    )
    for index, (one, row) in enumerate(zip(columns, rows, strict=True)):
        held[index] = _held(setting, one, row)
    columns[:, 4] = [_running(count, row) for count, row in zip(held, rows, strict=True)]
    return OfflineGroup(rows, setting, ShapeArrays(*columns.T), held, np.array([row.throughput for row in rows]))


def _held(setting: Setting, shape: np.ndarray, row: OfflineRow) -> int:
    """Sequences of full length that the KV cache holds and the engine is built for."""
    fields = {name: getattr(setting, name) for name in Setting.__dataclass_fields__}
    one = Setting(**fields | {"prompt_tokens": float(row.prompt), "output_tokens": float(row.output)})
    return min(int(memory(one, ShapeArrays(*shape[:, None])).max_sequences[0]), MOST_SEQUENCES)


def _running(held: int, row: OfflineRow) -> int:
    """Sequences that run on average, N / (N / B + 1/2), all N at once where they fit."""
    slots = max(held, 1)
    requests = REQUESTS.get((row.prompt, row.output))
    if requests is None:
        return slots
    return requests if requests <= slots else max(round(requests / (requests / slots + 0.5)), 1)

"""Published serving measurements as rows: what the columns mean, and each row once."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path

MODELS = {
    "Llama-3-70B": "llama-3.1-70b",
    "Llama-3.1-70B": "llama-3.1-70b",
    "Llama-3.3-70B": "llama-3.1-70b",
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "llama-3.1-8b",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "nvidia/Qwen3-32B-NVFP4": "qwen3-32b",
    "Qwen/Qwen3-235B-A22B-FP8": "qwen3-235b-a22b",
    "Qwen/Qwen3.5-397B-A17B": "qwen3.5-397b-a17b",
    "MiniMaxAI/MiniMax-M2.5": "minimax-m2.5",
    "deepseek-ai/DeepSeek-R1": "deepseek-r1",
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-r1",
    "nvidia/DeepSeek-V3.1-NVFP4": "deepseek-v3",
    "moonshotai/Kimi-K2.5": "kimi-k2.5",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "zhipuai/GLM-5": "glm-5",
    "Llama-3.1-8B": "llama-3.1-8b",
    "Llama-3.1-405B": "llama-3.1-405b",
    "Mistral-7B": "mistral-7b",
    "Mixtral-8x7B": "mixtral-8x7b",
    "Mixtral-8x22B": "mixtral-8x22b",
    "Llama-4-Scout": "llama-4-scout",
}
GPUS = {
    "H100-SXM-80GB": "h100-sxm-80gb",
    "H200-SXM-141GB": "h200-sxm-141gb",
    "B200-SXM": "b200-180gb",
    "B200-SXM-180GB": "b200-180gb",
    "B300-SXM": "b300-270gb",
    "GB200-NVL72": "gb200-186gb",
    "A100-SXM4-80GB": "a100-sxm-80gb",
    "A100-PCIE-80GB": "a100-pcie-80gb",
    "L40S": "l40s-48gb",
    "RTX-PRO-6000-Blackwell-SE": "rtx-pro-6000-96gb",
}
SIXTEEN = "bf16"


@dataclass(frozen=True)
class Row:
    """One measured operating point; `prompt`, `output` are means of what ran [tokens], `tpot`, `ttft` [s], `left_out` says why it is not used."""

    model: str
    dtype: str
    gpu: str
    engine: str
    version: str
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    data_parallel: int
    prompt: float
    output: float
    load: float
    tpot: float
    ttft: float
    inference_x: bool
    left_out: str = ""
    times_listed: int = 1

    @property
    def series(self) -> tuple[str, str, str, str]:
        """Engine, GPU, model and number format: what is fitted or held out as one."""
        return self.engine, self.gpu, self.model.split("/")[-1], self.dtype


def degrees_of(row: Row) -> tuple[int, int, int, int]:
    """Parallel degrees t, p, e, dp."""
    return row.tensor_parallel, row.pipeline_parallel, row.expert_parallel, row.data_parallel


def number(text: str, default: float = float("nan")) -> float:
    """Read a number, or the default where the cell is empty or a word."""
    try:
        return float(text)
    except ValueError:
        return default


def read_rows(path: Path) -> list[Row]:
    """Read the serving samples: TPOT with the TTFT printed beside it."""
    found: dict[tuple[object, ...], Row] = {}
    with path.open(newline="", encoding="utf-8") as file:
        waiting = float("nan")
        for line in csv.DictReader(file):
            if "silicon_sample" not in line["source"] or line["quality"] != "measured":
                continue
            if line["metric"] == "ttft":
                waiting = number(line["value"]) * 1e-3
            elif line["metric"] == "tpot":
                row = _row(line, waiting)
                # The source lists many measurements two or three times.
                figures = f"{row.tpot:.2g} {row.ttft:.3g}"
                same = found.setdefault((*row.series, row.version, *degrees_of(row), row.prompt, row.output, row.load, figures), row)
                if same is not row:
                    found[*row.series, row.version, *degrees_of(row), row.prompt, row.output, row.load, figures] = replace(
                        same, times_listed=same.times_listed + 1
                    )
    return list(found.values())


def _row(line: dict[str, str], ttft: float) -> Row:
    name, dtype = line["model"], line["dtype"]
    if dtype.startswith("unstated"):
        dtype = SIXTEEN
    load, reason = line["batch_or_concurrency"], ""
    if load.startswith("batch="):
        load, reason = load.removeprefix("batch="), "load is a batch size, not a concurrency"
    tensor, expert = int(number(line["tp"], 1)), max(int(number(line["ep"], 1)), 1)
    split = re.search(r"moe_tp=(\d+)", line["note"])
    gpus = max(int(split.group(1)), 1) * expert if split else tensor
    data = 1
    if gpus > tensor:
        data = gpus // tensor
        if data * tensor != gpus or gpus > 8:
            reason, data = "the columns contradict each other on the number of GPUs", 1
    # InferenceX draws lengths evenly from 0.8 to 1.0 of the nominal ones; files named after a model repeat its rows.
    shrink = 0.9 if "InferenceX" in line["note"] or re.search(r"\S-gap-analysis\.csv", line["note"]) else 1.0
    if "work-in-progress" in line["note"]:
        reason = reason or "marked as work in progress by the source"
    software = line["software"].split(maxsplit=1)
    return Row(
        model=name,
        dtype=dtype,
        gpu=line["gpu"],
        engine=software[0],
        version=software[1] if len(software) > 1 else "",
        tensor_parallel=tensor,
        pipeline_parallel=int(number(line["pp"], 1)),
        expert_parallel=min(expert, tensor * data),
        data_parallel=data,
        prompt=number(line["isl"]) * shrink,
        output=number(line["osl"]) * shrink,
        load=number(load),
        tpot=number(line["value"]) * 1e-3,
        ttft=ttft,
        inference_x=shrink < 1.0,
        left_out=reason,
    )

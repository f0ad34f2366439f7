"""Which parallel degree serves most per GPU: predicted and measured, with every request queued at once."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from serving_groups import paths_of, precision_of
from serving_rows import GPUS, MODELS, Row

from planner.catalog.engines import engine
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.evaluation import evaluate
from planner.cost.memory import memory
from planner.cost.setting import Setting, ShapeArrays

TIE = 0.97  # a gap under 3 % is a tie
# trtllm-bench leaves 95 % of the free memory to the KV cache in these tables; its chunk is not recorded.
KV_FRACTION = 0.95
CHUNK = 4096


@dataclass(frozen=True)
class Ranking:
    """One published line of degrees: tokens/s per GPU as measured and as predicted, and whether the total falls somewhere as GPUs are added."""

    name: str
    family: str
    degrees: tuple[int, ...]
    measured: tuple[float, ...]
    predicted: tuple[float, ...]
    falls: bool

    @property
    def right(self) -> bool:
        """The predicted best degree is the measured one, or within 3 % of it."""
        return self.measured[int(np.argmax(self.predicted))] >= TIE * max(self.measured)

    @property
    def predicted_to_fall(self) -> bool:
        """The predicted total falls somewhere as GPUs are added."""
        totals = np.array(self.predicted) * np.array(self.degrees)
        return bool((np.diff(totals) < 0.0).any())


def read_rankings(data_dir: Path) -> list[Ranking]:
    """Read ranking_targets.csv and predict every line of it."""
    with (data_dir / "ranking_targets.csv").open(newline="", encoding="utf-8") as file:
        return [_ranking(line) for line in csv.DictReader(file)]


def _ranking(line: dict[str, str]) -> Ranking:
    pairs = sorted((int(pair.split(":")[0]), float(pair.split(":")[1])) for pair in line["pergpu"].split())
    degrees = tuple(degree for degree, _ in pairs)
    prompt, output = (int(part) for part in line["shape"].split("/"))
    row = Row(line["model"], line["dtype"], line["gpu"], "trtllm", "", 1, 1, 1, 1, prompt, output, 1.0, 1.0, 1.0, inference_x=False)
    architecture, card = model(MODELS[row.model]), gpu(GPUS[row.gpu])
    setting = Setting(
        architecture=architecture,
        precision=precision_of(row, architecture, card),
        engine=engine("tensorrt-llm").name,
        gpu=card,
        paths=paths_of(card),
        prompt_tokens=float(prompt),
        output_tokens=float(output),
        max_batched_tokens=CHUNK,
        max_model_len=prompt + output,
        gpu_memory_utilization=KV_FRACTION,
    )
    piped = line["kind"] == "pp"
    columns = np.array(
        [
            (1, degree, 1, 1, 1, 0, 0, 1, int(degree > 1))
            if piped
            else (degree, 1, 1, 1, 1, int(degree > 1), int(degree > 1), 1, int(degree > 1))
            for degree in degrees
        ],
        dtype=np.int64,
    )
    held = memory(setting, ShapeArrays(*columns.T)).max_sequences
    columns[:, 4] = np.maximum(held, 1)
    throughput = evaluate(setting, ShapeArrays(*columns.T)).throughput
    predicted = np.where(held >= 1, throughput / np.array(degrees), 0.0)
    return Ranking(
        name=f"{line['model']} {line['dtype']} {line['gpu']} {line['shape']}",
        family=f"{line['model']} {line['dtype']} {line['gpu']} by {line['kind'].upper()}",
        degrees=degrees,
        measured=tuple(value for _, value in pairs),
        predicted=tuple(float(value) for value in predicted),
        falls=line["nonmono"] == "True",
    )


def report(data_dir: Path) -> None:
    """Print hits per family, every miss, and how far the totals themselves are off."""
    rankings = read_rankings(data_dir)
    for family in sorted({ranking.family for ranking in rankings}):
        members = [ranking for ranking in rankings if ranking.family == family]
        errors = np.concatenate([np.array(one.predicted) / np.array(one.measured) for one in members])
        hits = sum(one.right for one in members)
        print(f"  {family:58s} {hits:3d} of {len(members):3d}  throughput predicted/measured {np.median(errors):.2f} (predicted)")
    print("  misses:")
    for one in rankings:
        if not one.right:
            pairs = ", ".join(f"{d}: {p:.0f}/{m:.0f}" for d, p, m in zip(one.degrees, one.predicted, one.measured, strict=True))
            print(f"    {one.name}: predicted/measured per GPU {pairs}")
    dense = [one for one in rankings if "70B" in one.name and "by TP" in one.family]
    falling = [one for one in rankings if one.falls]
    for label, group in (("all", rankings), ("Llama 70B by TP", dense)):
        hits = sum(one.right for one in group)
        print(f"  best degree right or within 3 %, {label}: {hits} of {len(group)} ({hits / len(group):.0%})")
    print(f"  totals that fall with more GPUs: {sum(one.predicted_to_fall for one in falling)} of {len(falling)} predicted to fall")

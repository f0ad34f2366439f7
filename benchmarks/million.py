"""How fast the physics is: CPU seconds of a million (shape, batch, context) points, all times and the comparison with one GPU included.

    python -m benchmarks.million

For a dense model and one with routed experts on H200: every tensor-parallel degree from 1 to 8 that divides a server, six pipeline depths, data and expert parallelism where there are experts, at four contexts
and as many batches as make a million points. CPU seconds of the process (user and system, all threads) from the question to the last column; imports do not count. The target is
5 s on two cores.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator

import numpy as np

from planner.catalog.gpus import gpu
from planner.catalog.links import link
from planner.catalog.models import model
from planner.cost.evaluation import evaluate
from planner.cost.setting import Precision, Setting, ShapeArrays
from planner.topology.paths import LinkPath

MODELS = ("llama-3.1-70b", "deepseek-v3")
CONTEXTS = (512, 2048, 8192, 32768)
POINTS = 1_000_000
SERVER = 8
TARGET = 5.0


def degrees(routed: bool) -> Iterator[tuple[int, int, int, int]]:
    """Degrees (t, p, e, dp) of one stage a server at most."""
    for tensor in (1, 2, 4, 8):
        for data in (1, 2, 4, 8) if routed else (1,):
            if tensor * data <= SERVER:
                for expert in sorted({1, tensor * data}) if routed else (1,):
                    for stages in (1, 2, 3, 4, 6, 8):
                        yield tensor, stages, expert, data


def shapes_of(layouts: list[tuple[int, int, int, int]], batches: int) -> ShapeArrays:
    """Every layout at every batch from 1 to `batches`."""
    tensor, stages, expert, data = (np.repeat(np.array(column, dtype=np.int64), batches) for column in zip(*layouts, strict=True))

    def level(gpus: np.ndarray) -> np.ndarray:
        return np.where(gpus > SERVER, 2, np.where(gpus > 1, 1, 0))

    batch = np.tile(np.arange(1, batches + 1), len(layouts))
    stage = tensor * data
    return ShapeArrays(tensor, stages, expert, data, batch, level(tensor), level(stage), np.ones_like(batch), level(stage * stages))


def settings_of(name: str) -> list[Setting]:
    """The model in 16 bits under vLLM on H200 servers joined by one NIC a GPU, at every context."""
    card, network = gpu("h200-sxm-141gb"), link("infiniband-ndr-400")
    inside = link(card.scale_up or card.pcie)
    speed, nic = inside.bandwidth.value, network.bandwidth.value
    paths = (
        LinkPath("gpu", inside, speed, speed, 0),
        LinkPath("domain", inside, speed, speed, 2),
        LinkPath("leaf", network, nic, nic, 4, nics_per_gpu=1.0, across_scopes=True),
    )
    return [
        Setting(
            architecture=model(name),
            precision=Precision("bf16", "bf16", "bf16"),
            engine="vllm",
            gpu=card,
            paths=paths,
            prompt_tokens=float(context),
            output_tokens=512.0,
            max_batched_tokens=8192,
            max_model_len=65536,
            gpu_memory_utilization=0.9,
        )
        for context in CONTEXTS
    ]


def measured(name: str) -> tuple[int, float]:
    """Points evaluated, and CPU seconds they took."""
    settings = settings_of(name)
    layouts = list(degrees(any(kind.feed_forward and kind.feed_forward.experts for kind in settings[0].architecture.layer_kinds)))
    shapes = shapes_of(layouts, -(-POINTS // (len(layouts) * len(settings))))
    begun = time.process_time()
    points = sum(evaluate(setting, shapes).tpot.size for setting in settings)
    return points, time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    for name in MODELS:
        found = [measured(name) for _ in range(runs)]
        seconds = [took / points * POINTS for points, took in found]
        middle = statistics.median(seconds)
        verdict = "met" if middle <= TARGET else "missed"
        print(
            f"{name}: {found[0][0]:,} points; a million take {middle:.2f} s of CPU ({min(seconds):.2f}-{max(seconds):.2f}), target {TARGET:g} s: {verdict}"
        )


if __name__ == "__main__":
    main()

"""Published collective measurements as series, ready to be fitted.

`DATA_DIR` holds `collectives.csv` with columns source, op, fabric, gpu, n_gpus, bytes, latency_us, impl, quality, note: nccl-tests and engine kernel
tables published by ai-dynamo/aiconfigurator (systems data), microsoft/vidur (profiling/network) and single threads. Sizes follow nccl-tests: all-gather
and reduce-scatter count the total buffer, all-reduce and all-to-all the buffer of one rank.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

# gpu, start of the fabric column -> name of the fabric in the catalog
FABRICS = {
    ("A100-SXM", "NVLink3+NVSwitch"): "nvlink3-a100",
    ("H100-SXM", "NVLink4+NVSwitch"): "nvlink4-h100",
    ("B200-SXM", "NVLink5+NVSwitch"): "nvlink5-b200",
    ("GB200", "NVLink5 NVL72"): "nvlink5-nvl72",
    ("L40S", "PCIe4"): "pcie4-x16",
    ("A100-PCIE", "pairwise NVLink bridge + PCIe4"): "pcie4-a100",
    ("H100-PCIE", "pairwise NVLink bridge + PCIe5"): "pcie5-h100",
    ("A800-PCIE", "PCIe4, two 4-GPU islands"): "pcie4-a100",
    ("MI355X", "xGMI (Infinity Fabric) 8-GPU"): "xgmi-mi355x",
}
# The L40S tables come from two boxes: eight GPUs take 17 to 20 ms for 16 MiB in all of them but one, which takes 1.5 ms. Only there can GPUs write to each other.
PEER_ACCESS = {("sglang", "0.5.12")}
OPERATIONS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter", "alltoall": "all_to_all"}

# The same published tables give a few sizes only for these two; us at each size.
AICONFIGURATOR = "ai-dynamo/aiconfigurator @095f58a5 systems data"
FEW_SIZES = (2048, 1 << 20, 16 << 20, 512 << 20)
GB200_MORE_RANKS = {8: (28, 31, 101, 1321), 16: (48, 46, 110, 1345), 32: (51, 63, 136, 1696), 64: (51, 73, 144, 1780)}
PCIE5_SIZES = (2048, 64 << 10, 512 << 10, 4 << 20, 16 << 20, 512 << 20)
PCIE5_EIGHT = {
    "nccl": (25.5, 34.2, 156.1, 345.5, 1248, 38073),
    "sglang": (25.6, 31.6, 156.6, 346.0, 1264, 38528),
    "tensorrt-llm": (25.7, 31.4, 156.7, 346.2, 1285, 39057),
    "vllm": (25.5, 31.2, 156.3, 346.9, 1275, 38802),
}


@dataclass(frozen=True)
class Key:
    """What one set of constants belongs to; `eager` rows were timed from PyTorch without a graph and hold the skew between ranks."""

    fabric: str
    library: str
    version: str
    operation: str
    eager: bool = False


@dataclass(frozen=True)
class Series:
    """Times [s] over message sizes [B] of one key at one number of ranks, sorted by size."""

    key: Key
    ranks: int
    sizes: tuple[float, ...]
    seconds: tuple[float, ...]
    source: str


def _library(implementation: str) -> tuple[str, str, bool] | None:
    words = implementation.split()
    if implementation == "NCCL (PyTorch)":
        return "nccl", "pytorch", True
    if implementation == "NCCL":
        return "nccl", "unstated", True
    if words[0] == "NCCL":
        return "nccl", words[1], False
    if words[0] in {"vllm", "sglang", "trtllm"} and len(words) == 3:
        return {"trtllm": "tensorrt-llm"}.get(words[0], words[0]), words[1], False
    if implementation.startswith("vLLM custom AR (release"):
        return "vllm", "release", False
    if implementation.startswith("vLLM custom AR (dev"):
        return "vllm", "development", False
    return None


def read_series(data_dir: Path) -> list[Series]:
    """Read every series of one node that the catalog has a fabric for."""
    points: dict[tuple[Key, int], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    sources: dict[tuple[Key, int], str] = {}
    with (data_dir / "collectives.csv").open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            fabric = FABRICS.get((row["gpu"], row["fabric"]))
            library = _library(row["impl"])
            if fabric is None or library is None or row["op"] not in OPERATIONS:
                continue
            ranks = int(row["n_gpus"])
            name, version, eager = library
            # A bridged pair is a fabric of its own; four GPUs of such a box meet over PCIe.
            if ranks == 2 and fabric in {"pcie4-a100", "pcie5-h100"}:
                fabric = {"pcie4-a100": "nvlink3-a100-bridge", "pcie5-h100": "nvlink4-bridge"}[fabric]
            if fabric == "pcie4-x16" and (name, version) not in PEER_ACCESS:
                fabric = "pcie4-x16-no-peer"
            key = Key(fabric, name, version, OPERATIONS[row["op"]], eager)
            points[key, ranks][float(row["bytes"])].append(float(row["latency_us"]) * 1e-6)
            sources[key, ranks] = row["source"]
    found = [
        Series(key, ranks, tuple(sorted(by_size)), tuple(median(by_size[size]) for size in sorted(by_size)), sources[key, ranks])
        for (key, ranks), by_size in points.items()
    ]
    for ranks, micros in GB200_MORE_RANKS.items():
        key = Key("nvlink5-nvl72", "nccl", "2.29.2", "all_reduce")
        found.append(Series(key, ranks, FEW_SIZES, tuple(time * 1e-6 for time in micros), AICONFIGURATOR))
    for library, micros in PCIE5_EIGHT.items():
        key = Key("pcie5-x16", library, "unstated", "all_reduce")
        found.append(Series(key, 8, PCIE5_SIZES, tuple(time * 1e-6 for time in micros), AICONFIGURATOR))
    return sorted(found, key=lambda series: (str(series.key), series.ranks))

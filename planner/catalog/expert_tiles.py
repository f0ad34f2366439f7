"""Kernels of routed experts that compute a tile for every expert of a rank, whether it has tokens or not; data in `data/engines.toml` (`tiles`)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.catalog.engines import engine
from planner.catalog.gpus import Gpu
from planner.catalog.read import DATA
from planner.catalog.versions import matches
from planner.diagnostics import PlannerError


@dataclass(frozen=True, slots=True)
class ExpertTile:
    """`rows` tokens that every expert costs a rank in a pass, but at the tensor-parallel degrees `spared`, where the engine picks another kernel."""

    rows: int
    spared: tuple[int, ...]
    source: str


@cache
def expert_tile(name: str, gpu: Gpu, dtype: str) -> ExpertTile | None:
    """Tile of the kernel for experts stored as `dtype` ("fp8-block", ...) of an engine ("vllm", "vllm 0.12") on a GPU; None where only experts with tokens cost something."""
    try:
        rules = engine(name)
    except PlannerError:  # an engine without rules of its own runs on constants of others
        return None
    capability = "0" if gpu.compute_capability is None else str(gpu.compute_capability)
    for entry in _tiles(rules.name):
        if entry["format"] == dtype and matches(rules.version, entry["versions"]) and matches(capability, entry["capability"]):
            return ExpertTile(entry["rows"], tuple(entry["spared_tp"]), entry["source"])
    return None


@cache
def _tiles(name: str) -> tuple[dict[str, Any], ...]:
    tables = tomllib.loads((DATA / "engines.toml").read_text(encoding="utf-8"))
    return tuple(tables[name].get("tiles", ()))

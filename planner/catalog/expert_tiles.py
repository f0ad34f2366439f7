"""Kernels of routed experts that compute a tile for every expert of a rank, whether it has tokens or not; data in `data/engines.toml` (`tiles`)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.catalog.engines import Engine
from planner.catalog.gpus import Gpu
from planner.catalog.read import DATA
from planner.catalog.versions import matches


@dataclass(frozen=True, slots=True)
class ExpertTile:
    """`rows` tokens that every expert costs a rank in a pass, but at the tensor-parallel degrees `spared`, where the engine picks another kernel."""

    rows: int
    spared: tuple[int, ...]
    source: str


def expert_tile(engine: Engine, gpu: Gpu, dtype: str) -> ExpertTile | None:
    """Tile of an engine version's kernel for experts stored as `dtype` ("fp8-block", ...) on a GPU; None where only experts with tokens cost something."""
    capability = "0" if gpu.compute_capability is None else str(gpu.compute_capability)
    for entry in _tiles(engine.name):
        if entry["format"] == dtype and matches(engine.version, entry["versions"]) and matches(capability, entry["capability"]):
            return ExpertTile(entry["rows"], tuple(entry["spared_tp"]), entry["source"])
    return None


@cache
def _tiles(engine: str) -> tuple[dict[str, Any], ...]:
    tables = tomllib.loads((DATA / "engines.toml").read_text(encoding="utf-8"))
    return tuple(tables[engine].get("tiles", ()))

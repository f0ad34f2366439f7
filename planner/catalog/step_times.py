"""How fast engines really run on a kind of GPU: the constants of the additive step-time form, each with its basis, source and error.

`step_constants("vllm", gpu)` gives the constants fitted for that engine on that generation of GPUs; where nobody published a measurement the
engine's own figures of another generation stand in, and for an unknown engine the mean of the known ones, both marked "assumed".
The form itself is in `cost.calibrated`; the data is `data/step_times.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from planner.catalog.facts import Basis
from planner.catalog.nearest import plain
from planner.catalog.read import DATA

_ALIASES: Final[dict[str, str]] = {"tensorrtllm": "trtllm", "tensorrt": "trtllm", "trt": "trtllm"}

SIXTEEN_BITS: Final = frozenset({"bf16", "fp16", "fp32"})
FOUR_BITS: Final = frozenset({"nvfp4", "mxfp4", "int4"})


@dataclass(frozen=True)
class StepConstants:
    """Constants of the step time of one engine on one generation of GPUs.

    `weight_read` (eta_m, by width "16", "8", "4" of the weights in bits) and `kv_read` (eta_kv) are shares of the data sheet's memory bandwidth that reading
    weights and KV cache reach, `multiply` (eta_f, by width) shares of the dense FLOP/s of the data sheet, `attend` the same for attention over a prompt.
    `expert_read` and `expert_multiply` are the shares that grouped matrices of experts reach. `layer` (c_layer) and `moe_layer` (on top of it)
    [s] are spent once a layer, `sequence` (c_seq) [s] once a layer and sequence, `step` (c_step) [s] once a forward pass; none of them
    shrinks with tensor parallelism. `prefill_exchange` (kappa) multiplies the all-reduces of prompt tokens.
    `jitter_compute` and `jitter_exchange` are sigmas of the log-normal factors of `cost.tails`.
    `rows`, `median_error` and `p90_error` [shares of 1] tell what the constants were fitted on and how well; 0 rows = assumed.
    """

    engine: str
    architecture: str
    weight_read: Mapping[str, float]
    kv_read: float
    layer: float
    sequence: float
    step: float
    multiply: Mapping[str, float]
    attend: float
    prefill_exchange: float
    moe_layer: float
    expert_read: Mapping[str, float]
    expert_multiply: Mapping[str, float]
    jitter_compute: float
    jitter_exchange: float
    basis: Basis
    source: str
    rows: int = 0
    median_error: float = 0.0
    p90_error: float = 0.0


def weight_width(dtype: str) -> str:
    """Width of a number format in bits, as a key of the tables: "16", "8" or "4"."""
    if dtype in SIXTEEN_BITS:
        return "16"
    return "4" if dtype in FOUR_BITS else "8"


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "step_times.toml").read_text(encoding="utf-8"))


@cache
def step_engines() -> tuple[str, ...]:
    """Engines with constants of their own."""
    return tuple(name for name in _tables()["engines"] if name != "generic")


def _engine_key(engine: str) -> str:
    key = plain(engine)
    key = _ALIASES.get(key, key)
    return key if key in _tables()["engines"] else "generic"


@cache
def step_constants(engine: str, architecture: str) -> StepConstants:
    """Constants of an engine on a generation of GPUs ("hopper", "blackwell", ...).

    A generation that was never measured takes the constants of the engine's first table (its best measured generation) with basis "assumed".
    """
    key = _engine_key(engine)
    entry = _tables()["engines"][key]
    generations: list[dict[str, Any]] = entry["generations"]
    found = next((table for table in generations if architecture in table["architectures"]), None)
    table: dict[str, Any] = dict(found or generations[0])
    measured: list[str] = table.pop("architectures")
    if found is None:
        table["basis"] = "assumed"
        table["source"] = f"constants of {', '.join(measured)} stand in: {table['source']}"
    table.setdefault("basis", "assumed")
    return StepConstants(engine=key, architecture=architecture, **table)

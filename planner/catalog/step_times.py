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

# What stands in for a number format that a table does not list, nearest first.
_STAND_INS: Final[dict[str, tuple[str, ...]]] = {
    "bf16": ("fp16", "fp8"),
    "fp16": ("bf16", "fp8"),
    "fp32": ("bf16", "fp16"),
    "fp8": ("int8", "bf16"),
    "int8": ("fp8", "bf16"),
    "mxfp8": ("fp8", "bf16"),
    "mxfp6": ("fp8", "nvfp4"),
    "int4": ("mxfp4", "nvfp4", "fp8"),
    "mxfp4": ("nvfp4", "int4", "fp8"),
    "nvfp4": ("mxfp4", "int4", "fp8"),
}


@dataclass(frozen=True)
class StepConstants:
    """Constants of the step time of one engine on one generation of GPUs.

    Tables go by the number format of the weights, see `of_dtype`. `weight_read` (eta_m) and `kv_read` (eta_kv) are shares of the data sheet's memory bandwidth that
    reading weights and KV cache reach, `multiply` (eta_f) shares of its dense FLOP/s, `attend` the same for attention over a prompt; `expert_read` and
    `expert_multiply` are what grouped matrices of experts reach, whose kernels gain nothing from memory faster than `expert_bandwidth` [B/s]. `expert_tile` [tokens] is what every
    touched expert costs besides its own tokens, `expert_traffic` how often a token's copies cross memory, `evenness` the shape of the routing
    (`cost.compute`).

    Seconds a layer: `layer` (c_layer), on top of it `mixer_layer` by kind of mixer ("mla", "sparse", "recurrent") and `moe_layer` by format of the experts;
    `sequence` (c_seq) a layer and sequence, `step` (c_step) a pass. None of them shrinks with tensor parallelism. A pass that carries prompt tokens runs without
    recorded graphs and spends `prompt_layer`, in MoE layers `prompt_moe_layer`, more. `prefill_exchange` (kappa) multiplies the all-reduces of prompt tokens.

    In a closed loop a prompt waits behind `prompt_queue` (B - 1)^`prompt_crowding` prompts of its like, and `first_token` [s] is spent once a request.
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
    mixer_layer: Mapping[str, float]
    moe_layer: Mapping[str, float]
    prompt_layer: float
    prompt_moe_layer: float
    expert_read: Mapping[str, float]
    expert_multiply: Mapping[str, float]
    expert_bandwidth: float
    expert_tile: float
    expert_traffic: float
    evenness: float
    prompt_queue: float
    prompt_crowding: float
    first_token: float
    jitter_compute: float
    jitter_exchange: float
    basis: Basis
    source: str
    rows: int = 0
    median_error: float = 0.0
    p90_error: float = 0.0


def of_dtype(table: Mapping[str, float], dtype: str) -> float:
    """Entry of a number format, or of the nearest one that the table lists."""
    for name in (dtype, *_STAND_INS.get(dtype, ())):
        if name in table:
            return table[name]
    return next(iter(table.values()))


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

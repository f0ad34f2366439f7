"""How fast engines really run on a kind of GPU: the constants of the additive step-time form, each with its basis, source and error.

`step_constants("vllm", gpu)` gives the constants fitted for that engine on that generation of GPUs; where nobody published a measurement the
engine's own figures of another generation stand in, and for an unknown engine the mean of the known ones, both marked "assumed".
The form itself is in `cost.calibrated`; the data is `data/step_times.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from planner.catalog.engines import engine as engine_rules
from planner.catalog.facts import Basis
from planner.catalog.nearest import plain
from planner.catalog.read import DATA
from planner.catalog.versions import matches, version_key

_ALIASES: Final[dict[str, str]] = {"tensorrtllm": "trtllm", "tensorrt": "trtllm", "trt": "trtllm"}

# What stands in for a number format that a table does not list, nearest first.
_STAND_INS: Final[dict[str, tuple[str, ...]]] = {
    "bf16": ("fp16", "fp8"),
    "fp16": ("bf16", "fp8"),
    "fp32": ("bf16", "fp16"),
    "fp8": ("int8", "fp8-block", "bf16"),
    "fp8-block": ("fp8", "int8", "bf16"),
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

    Tables go by the number format of the weights, see `of_dtype`; "fp8-block" is FP8 scaled by blocks of 128 x 128, whose kernels add up in two stages, "fp8" with one scale a tensor or
    channel. `weight_read` (eta_m) and `kv_read` (eta_kv) are shares of the data sheet's memory bandwidth that
    reading weights and KV cache reach, `multiply` (eta_f) shares of its dense FLOP/s, `attend` the same for attention over a prompt; `expert_read` and
    `expert_multiply` are what grouped matrices of experts reach, whose kernels gain nothing from memory faster than `expert_bandwidth` [B/s]. `expert_tile` [tokens] is what every
    touched expert costs besides its own tokens, `expert_traffic` how often a token's copies cross memory, `evenness` the shape of the routing
    (`cost.compute`).

    `memory_reference` [B/s] is the bandwidth of the GPU they were measured on: what kernels and not the memory bound there is no bound on a slower memory (`read_share`).

    Seconds a layer: `layer` (c_layer), on top of it `mixer_layer` by kind of mixer ("mla", "sparse", "recurrent") and `moe_layer` by format of the experts;
    `sequence` (c_seq) a layer of the whole model and sequence in every pass, `step` (c_step) a pass. None of them shrinks with tensor parallelism. A pass that carries prompt tokens runs without
    recorded graphs and spends `prompt_layer`, in MoE layers `prompt_moe_layer`, more. `prefill_exchange` (kappa) multiplies the all-reduces of prompt tokens, `decode_exchange` those
    of decoding ones inside a scale-up scope (over PCIe the lanes set the pace).

    In a closed loop a prompt waits behind `prompt_queue` (B - 1)^`prompt_crowding` prompts of its like, and `first_token` [s] is spent once a request.
    `jitter_compute` and `jitter_exchange` are sigmas of the log-normal factors of `cost.tails`.
    `rows`, `median_error` and `p90_error` [shares of 1] tell what the constants were fitted on and how well; 0 rows = assumed.
    """

    engine: str
    architecture: str
    weight_read: Mapping[str, float]
    kv_read: float
    memory_reference: float
    layer: float
    sequence: float
    step: float
    multiply: Mapping[str, float]
    attend: float
    prefill_exchange: float
    decode_exchange: float
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


# The most of a memory's bandwidth that any kernel of the tables reaches where nothing but the memory bounds it (16-bit weights on Hopper, vLLM 0.12).
BEST_READ: Final = 0.91


def read_share(constants: StepConstants, share: float, bandwidth: float) -> float:
    """Share of a memory of `bandwidth` [B/s] that kernels reach which got `share` of the reference memory.

    Kernels of narrow formats take B200's 8 TB/s at 60 %, since they unpack no faster; the same kernels on a GPU of 1.8 TB/s are bound by its memory.
    """
    return max(share, min(BEST_READ, share * constants.memory_reference / bandwidth))


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "step_times.toml").read_text(encoding="utf-8"))


@cache
def step_engines() -> tuple[str, ...]:
    """Engines with constants of their own."""
    return tuple(name for name in _tables()["engines"] if name != "generic")


def _named(engine: str) -> tuple[str, str]:
    """Key of an engine's tables, and its version: the one it is named with ("vllm 0.12", "vllm==0.12"), else the catalog's default, else none."""
    name, *rest = re.split(r"[\s@=]+", engine.strip(), maxsplit=1)
    key = _ALIASES.get(plain(name), plain(name))
    if key not in _tables()["engines"]:
        return "generic", ""
    return key, rest[0] if rest and version_key(rest[0]) else engine_rules(key).version if key != "generic" else ""


@cache
def step_constants(engine: str, architecture: str) -> StepConstants:
    """Constants of an engine ("vllm", or with its version "tensorrt-llm 0.14") on a generation of GPUs ("hopper", "blackwell", ...).

    A table was measured on the versions it names, else on the catalog's default version of the engine. A generation that was never measured with this
    version takes the constants measured with another one, and one that was never measured those of the engine's first table (its best measured
    generation), both with basis "assumed".
    """
    key, version = _named(engine)
    generations: list[dict[str, Any]] = _tables()["engines"][key]["generations"]

    def fit(table: dict[str, Any]) -> tuple[bool, bool]:
        return architecture in table["architectures"], not version or matches(version, table.get("versions", ""))

    best = max(generations, key=fit)  # the first of equals
    table = dict(best)
    same, current = fit(best)
    measured: list[str] = table.pop("architectures")
    versions = table.pop("versions", "")
    if not versions and version:
        versions = engine_rules(key).version
        current = version_key(version) == version_key(versions)
    if not (same and current):
        table["basis"] = "assumed"
        table["source"] = f"constants of {', '.join(measured)}{f' and version {versions}' * (not current)} stand in: {table['source']}"
    table.setdefault("basis", "assumed")
    return StepConstants(engine=key, architecture=architecture, **table)
